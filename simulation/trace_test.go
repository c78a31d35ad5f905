package simulation

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wva-project/wva/fleet"
)

func TestReadTraceReadsTheAzureForm(t *testing.T) {
	const text = "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
		"2023-11-16 18:15:46.6805900,374,44\r\n" +
		"2023-11-16 18:15:50.9951690,396,109\r\n"
	got, err := ReadTrace(strings.NewReader(text), chat)
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{{0, chat, 374, 44}, {4.314579, chat, 396, 109}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestReadTraceFindsColumnsSortsAndReadsEveryForm(t *testing.T) {
	want := []Request{{0, chat, 7, 1}, {1.5, chat, 9, 3}, {3600, chat, 8, 2}}
	for name, lines := range map[string][]string{
		"seconds":         {"1e1", "3610", "11.5"},
		"from zero":       {"0", "3600", "1.5"},
		"negative":        {"-3600", "0", "-3598.5"},
		"dates":           {"2024-05-10 00:00:00", "2024-05-10 01:00:00", "2024-05-10 00:00:01.5"},
		"dates with zone": {"2024-05-10 00:00:00+00:00", "2024-05-10 03:00:00+02:00", "2024-05-10 00:00:01.500000+00:00"},
		"RFC 3339":        {"2024-05-09T23:00:00-01:00", "2024-05-10T01:00:00Z", "2024-05-10T00:00:01.5Z"},
	} {
		text := "model, generatedtokens ,kind,TIMESTAMP,ContextTokens\n" +
			"a,2,\"x,y\"," + lines[1] + ",8\n\n" + // the last comes first
			"a,0,," + lines[0] + ", 7 \n" +
			"a,3,," + lines[2] + ",9,more\n"
		got, err := ReadTrace(strings.NewReader(text), chat)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !slices.Equal(got, want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestReadTraceReportsErrorsWithTheirLines(t *testing.T) {
	const header = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"the trace is empty"}},
		{"no requests", header, []string{"no requests"}},
		{"columns", "TIMESTAMP,Context,ContextTokens,ContextTokens\n1,2,3,4\n", []string{
			`line 1: 2 columns ContextTokens, no column GeneratedTokens; the columns found are "TIMESTAMP", "Context", "ContextTokens", "ContextTokens"; ` +
				"write a header with one column each of TIMESTAMP, ContextTokens and GeneratedTokens",
		}},
		{"no CSV", strings.Repeat("x", 100) + strings.Repeat(",a", 20), []string{`"` + strings.Repeat("x", 40) + `...", "a"`, `"a", 9 more; write`}},
		{"header later", "\n\nTIMESTAMP,a\n", []string{"line 3: no column ContextTokens"}},
		{"several", header + "1,2,3\nnoon,-1,x\n\n2,3\n3,4,99999999\n4,5.5,1\n", []string{
			`line 3: TIMESTAMP "noon": write it as`, `line 3: ContextTokens "-1": write a whole number from 0`, `line 3: GeneratedTokens "x"`,
			"line 5: 2 fields", `line 6: GeneratedTokens "99999999"`, `line 7: ContextTokens "5.5"`,
		}},
		{"mixed", header + "1,2,3\n2023-11-16 18:15:46,2,3\n", []string{"line 3:", "mixed"}},
		{"not a number", header + "NaN,2,3\nInf,2,3\n", []string{`line 2: TIMESTAMP "NaN"`, `line 3: TIMESTAMP "Inf"`}},
		{"years", header + "2023-11-16 18:15:46,2,3\n2032-11-16 18:15:46,2,3\n", []string{"line 3:", "over a year away"}},
		{"quotes", header + "1,2,3\n\"2\"x,2,3\n3,a,4\n", []string{"line 3:", `line 4: ContextTokens "a"`}},
	} {
		requests, err := ReadTrace(strings.NewReader(c.text), chat)
		if err == nil || requests != nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in:\n%v", c.name, want, err)
			}
		}
	}
}

func TestReadTraceStopsAfterTenErrors(t *testing.T) {
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n" + strings.Repeat("1,x,3\n", 1000)
	_, err := ReadTrace(strings.NewReader(text), chat)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || !strings.HasPrefix(lines[9], "line 11:") || !strings.Contains(lines[10], "stopped after 10 errors") {
		t.Errorf("got %d lines:\n%v", len(lines), err)
	}
}

func TestReadTracePassesOnErrorsOfTheReader(t *testing.T) {
	broken := errors.New("disk gone")
	_, err := ReadTrace(iotest.ErrReader(broken), chat)
	if !errors.Is(err, broken) {
		t.Errorf("header: %v", err)
	}
	half := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n")))
	if _, err = ReadTrace(half, chat); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("body: %v", err)
	}
}

// azure returns the hour of conversations, or skips the test.
func azure(t *testing.T) []Request {
	t.Helper()
	file, err := os.Open("../../shared/data/azure_conv_2023.csv")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no Azure trace ../shared/data/azure_conv_2023.csv beside the checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	requests, err := ReadTrace(file, chat)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

func TestReadTraceReadsTheAzureHour(t *testing.T) {
	requests := azure(t)
	if len(requests) != 19366 {
		t.Errorf("%d requests", len(requests))
	}
	prompts, outputs := 0, 0
	for _, r := range requests {
		prompts, outputs = prompts+r.Prompt, outputs+r.Output
	}
	near(t, "mean prompt", float64(prompts)/19366, 1155, 0.001)
	near(t, "mean output", float64(outputs)/19366, 211, 0.005)
	near(t, "minutes", requests[len(requests)-1].Arrival/60, 58, 0.02)
	if requests[0].Arrival != 0 {
		t.Errorf("it begins at %v", requests[0].Arrival)
	}
}

func TestScaleMultipliesTheAzureHourMinuteByMinute(t *testing.T) {
	trace := azure(t)
	length := trace[len(trace)-1].Arrival
	for factor, want := range map[float64]int{1: 19366, 4: 77464, 2.5: 48415, 0.3: 5810} {
		scaled, err := Scale(trace, factor, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(scaled) != want {
			t.Errorf("factor %v: %d requests, want %d", factor, len(scaled), want)
		}
		before, after := perMinute(trace), perMinute(scaled)
		if got := correlation(before, after); got < 0.9 {
			t.Errorf("factor %v: minutes correlate by %v", factor, got)
		}
		near(t, "busiest minute", slices.Max(after), factor*slices.Max(before), 0.1)
		if scaled[0].Arrival < 0 || scaled[len(scaled)-1].Arrival > length || !slices.IsSortedFunc(scaled, byArrival) {
			t.Errorf("factor %v: from %v to %v s of %v", factor, scaled[0].Arrival, scaled[len(scaled)-1].Arrival, length)
		}
	}
}

func byArrival(a, b Request) int {
	if a.Arrival < b.Arrival {
		return -1
	}
	return 0
}

func perMinute(requests []Request) []float64 {
	minutes := make([]float64, 59)
	for _, r := range requests {
		minutes[int(r.Arrival/60)]++
	}
	return minutes[:58] // the last one is incomplete
}

func correlation(a, b []float64) float64 {
	meanA, cvA := moments(a)
	meanB, cvB := moments(b)
	sum := 0.0
	for i := range a {
		sum += (a[i]/meanA - 1) * (b[i]/meanB - 1) / float64(len(a))
	}
	return sum / math.Sqrt(cvA*cvB)
}

func TestScaleIsExactAndSeededAndKeepsTheTrace(t *testing.T) {
	var trace []Request
	for i := range 101 {
		trace = append(trace, Request{float64(i * 10), chat, i + 1, 2})
	}
	before := slices.Clone(trace)
	scaled, err := Scale(trace, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(trace, before) {
		t.Error("the trace was changed")
	}
	copies := map[int][]float64{}
	for _, r := range scaled {
		copies[r.Prompt] = append(copies[r.Prompt], r.Arrival)
	}
	for prompt, arrivals := range copies {
		own := float64((prompt - 1) * 10)
		if len(arrivals) != 3 || !slices.Contains(arrivals, own) {
			t.Fatalf("request %d arrives at %v", prompt, arrivals)
		}
		for _, at := range arrivals {
			if shift := math.Mod(at-own+1000, 1000); shift > maxShift || at > 1000 {
				t.Errorf("request %d was shifted by %v", prompt, shift)
			}
		}
	}
	again, _ := Scale(trace, 3, 5)
	other, _ := Scale(trace, 3, 6)
	if !slices.Equal(scaled, again) || slices.Equal(scaled, other) {
		t.Error("the seed does not matter")
	}
	if same, err := Scale(trace, 1, 9); err != nil || !slices.Equal(same, trace) {
		t.Errorf("factor 1 gives another trace: %v", err)
	}
}

func TestScaleWorksOnShortTraces(t *testing.T) {
	for n, trace := range [][]Request{nil, {{5, chat, 1, 1}}, {{0, chat, 1, 1}, {2, chat, 1, 1}}} {
		scaled, err := Scale(trace, 3, 1)
		if err != nil || len(scaled) != 3*n {
			t.Errorf("%d requests became %d: %v", n, len(scaled), err)
		}
		for _, r := range scaled {
			if r.Arrival < trace[0].Arrival || r.Arrival > trace[n-1].Arrival {
				t.Errorf("%d requests: one arrives at %v", n, r.Arrival)
			}
		}
	}
}

func TestScaleRejectsInvalidFactors(t *testing.T) {
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1), 1e9} {
		if _, err := Scale([]Request{{0, chat, 1, 1}}, factor, 1); err == nil {
			t.Errorf("factor %v was accepted", factor)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n")
	f.Add("\ufeffx,GeneratedTokens,TIMESTAMP,ContextTokens\n,0,-1e300,1\n,0,1e300,1\n")
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n\"1\n2\",\"\",3\n")
	f.Add("ContextTokens,GeneratedTokens,TIMESTAMP\n1,2,0001-01-01T00:00:00Z\n1,2,9999-12-31T23:59:59Z\n")
	f.Fuzz(func(t *testing.T, text string) {
		requests, err := ReadTrace(strings.NewReader(text), chat)
		if (err == nil) != (len(requests) > 0) {
			t.Fatalf("%d requests and error %v", len(requests), err)
		}
		for i, r := range requests {
			if i == 0 && r.Arrival != 0 || i > 0 && r.Arrival < requests[i-1].Arrival || !(r.Arrival <= 2*maxSpan) {
				t.Fatalf("request %d arrives at %v", i, r.Arrival)
			}
			if r.Prompt < 1 || r.Output < 1 || r.Prompt > maxTokens || r.Output > maxTokens {
				t.Fatalf("request %d: %+v", i, r)
			}
		}
	})
}

// endless is a reader of one byte, as a device may be.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestReadTraceEndsAtALineThatIsTooLong(t *testing.T) {
	for _, begin := range []string{"", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n\""} {
		_, err := ReadTrace(io.MultiReader(strings.NewReader(begin), endless('1')), fleet.ModelID{})
		if err == nil || !strings.Contains(err.Error(), "a line is longer than 1048576 bytes") {
			t.Errorf("after %q: error %v", begin, err)
		}
	}
}

func TestErrorsOfATraceCutLongFields(t *testing.T) {
	long := strings.Repeat("1", 1000)
	for _, line := range []string{long + "x,1,1", "1," + long + ",1", long + ",1,1"} {
		_, err := ReadTrace(strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens\n"+line+"\n"), fleet.ModelID{})
		if err == nil || len(err.Error()) > 200 {
			t.Errorf("error %v", err)
		}
	}
}
