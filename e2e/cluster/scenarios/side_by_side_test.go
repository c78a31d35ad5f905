package scenarios

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/e2e/cluster"
	"github.com/wva-project/wva/e2e/cluster/play"
)

// scenario is a test with a namespace and servers of its own, in a cluster that it shares.
type scenario struct {
	name string
	run  func(t *testing.T, w *world)
}

// TestBesideKEDA runs one scenario after -run TestBesideKEDA/Name, and else all at the same time.
func TestBesideKEDA(t *testing.T) {
	c := cluster.Start(t, play.Options())
	require.NoError(t, c.Apply(t.Context(), []byte(roleScalerKind)))
	t.Run("TwoLoadedVariantsSettleAndFollowTheLoad", func(t *testing.T) {
		t.Parallel()
		twoLoadedVariantsSettleAndFollowTheLoad(t, c)
	})
	sideBySideIn(t, c, []scenario{
		{"ConfigMapsChangePlansWithinTheirLimits", configMapsChangePlansWithinTheirLimits},
		{"DataParallelGroupsAreSizedByAllTheirPods", dataParallelGroupsAreSizedByAllTheirPods},
		{"KEDAScalesFromZeroToThreeAndBack", kedaScalesFromZeroToThreeAndBack},
		{"KillUnderLoadLowersNothing", killUnderLoadLowersNothing},
		{"LostNodeAtLoadLowersNothing", lostNodeAtLoadLowersNothing},
		{"NumberThatNoHPAFollowsIsACondition", numberThatNoHPAFollowsIsACondition},
		{"OnlyAModelWithAGatewayGoesToZeroAfterItsRetention", onlyAModelWithAGatewayGoesToZeroAfterItsRetention},
		{"OnlyTheCheapestVariantIsWokenByAQueue", onlyTheCheapestVariantIsWokenByAQueue},
		{"PlansUseOnlyTheAcceleratorsThatAreFree", plansUseOnlyTheAcceleratorsThatAreFree},
		{"PlansCountDevicesThatTheSchedulerAllocates", plansCountDevicesThatTheSchedulerAllocates},
		{"PlansCountSlicesOfGPUs", plansCountSlicesOfGPUs},
		{"PlansFitTheNodesAsTheyAre", plansFitTheNodesAsTheyAre},
		{"PlansStayWithinTheQuotaOfTheNamespace", plansStayWithinTheQuotaOfTheNamespace},
		{"PrometheusKilledAtLoadLowersNothing", prometheusKilledAtLoadLowersNothing},
		{"RollingUpdateAtLoadKeepsTheNumber", rollingUpdateAtLoadKeepsTheNumber},
		{"ScaleDownKeepsTheLastReadyOrdinal", scaleDownKeepsTheLastReadyOrdinal},
		{"SecondHPAOfATargetHoldsItsNumber", secondHPAOfATargetHoldsItsNumber},
		{"ServerStartsNothingThatNobodyAskedFor", serverStartsNothingThatNobodyAskedFor},
		{"StatefulSetFollowsTheLoad", statefulSetFollowsTheLoad},
		{"StepsOfOneAreFollowedFromNineReplicasUp", stepsOfOneAreFollowedFromNineReplicasUp},
		{"TargetKnownByItsSelectorIsSizedByItsPods", targetKnownByItsSelectorIsSizedByItsPods},
		{"TwoServersAgreeForMinutes", twoServersAgreeForMinutes},
	})
}

// TestBesideAPIServer has nobody who acts on ScaledObjects.
func TestBesideAPIServer(t *testing.T) {
	sideBySideIn(t, cluster.Start(t, cluster.Options{KEDACRDs: true}), []scenario{
		{"AnnotatedDeploymentGetsARecommendationAndKEDAGetsNothing", annotatedDeploymentGetsARecommendationAndKEDAGetsNothing},
		{"AnswersFollowTheObjects", answersFollowTheObjects},
		{"EventsAreWrittenOnceByTheReplicaThatLeads", eventsAreWrittenOnceByTheReplicaThatLeads},
		{"OneChangedObjectOfManyMakesOneCycle", oneChangedObjectOfManyMakesOneCycle},
	})
}

func sideBySideIn(t *testing.T, c *cluster.Cluster, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, newSharedWorld(t, c))
		})
	}
}
