package standin

import (
	"hash/fnv"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/simulation"
)

// Scrape intervals in seconds. Gateways are few, and requests that wait at one are urgent.
const (
	scrapePods    = 15
	scrapeGateway = 5
)

// Scraper is Prometheus, which scrapes a fleet into its store.
type Scraper struct {
	store   *promstore.Store
	targets map[string]*target // that exist, or did at the latest scrape
	scrapes int                // calls of Scrape
}

// target is an endpoint between two scrapes.
type target struct {
	offset  int // seconds
	scraped bool
	seen    int // the latest call of Scrape that saw it
}

// NewScraper returns a scraper into a store.
func NewScraper(store *promstore.Store) *Scraper {
	return &Scraper{store: store, targets: make(map[string]*target)}
}

// Scrape scrapes the endpoints of the fleet that are due in a second. Call it for every second. If
// scrapes fail, the series of the endpoints that are due become stale, as they do if an endpoint is
// gone.
func (s *Scraper) Scrape(f *simulation.Fleet, second int, fails bool) error {
	s.scrapes++
	now := f.Time(float64(second))
	for _, e := range f.Endpoints() {
		t, known := s.targets[e.Name]
		if !known {
			t = &target{offset: scrapeOffset(e.Name)}
			s.targets[e.Name] = t
		}
		t.seen = s.scrapes
		every := scrapePods
		if e.Gateway {
			every = scrapeGateway
		}
		if (second+t.offset)%every != 0 {
			continue
		}
		t.scraped = true
		var samples []promstore.Sample
		if !fails {
			samples = labelled(e.Scrape())
		}
		if err := s.store.Scrape(e.Name, now, samples); err != nil {
			return err
		}
	}
	for name, t := range s.targets {
		if t.seen == s.scrapes {
			continue
		}
		delete(s.targets, name)
		if !t.scraped {
			continue
		}
		if err := s.store.Gone(name, now); err != nil {
			return err
		}
	}
	return nil
}

// labelled returns the samples of a scrape with the labels that Prometheus adds.
func labelled(target simulation.Target) []promstore.Sample {
	added := promstore.Labels("namespace", target.Namespace, "pod", target.Pod)
	samples := make([]promstore.Sample, 0, len(target.Samples))
	for _, s := range target.Samples {
		labels := make([]promstore.Label, 0, len(s.Labels)+len(added))
		for _, l := range s.Labels {
			labels = append(labels, promstore.Label(l))
		}
		samples = append(samples, promstore.Sample{Name: s.Name, Labels: append(labels, added...), Value: s.Value})
	}
	return samples
}

// scrapeOffset returns a number of seconds that differs from target to target, so that not all are
// scraped at once.
func scrapeOffset(name string) int {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return int(hash.Sum32() % scrapePods)
}
