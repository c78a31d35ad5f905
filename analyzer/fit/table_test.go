package fit

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadTableReadsTheRequiredColumnsAlone(t *testing.T) {
	got, err := ReadTable(strings.NewReader("\ufeffconcurrency,isl,osl,ttft_ms,tpot_ms\r\n1,128,64,21.5,6.25\r\n\r\n 64 ,1024,1e3,240,9.5\r\n"), UnitByName)
	if err != nil {
		t.Fatal(err)
	}
	want := Table{
		Groups:  []Group{{Rows: []Row{{2, 1, 128, 64, 21.5, 6.25}, {4, 64, 1024, 1000, 240, 9.5}}}},
		Columns: []string{"concurrency", "isl", "osl", "ttft", "tpot"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestReadTableTakesUnitsFromTheNames(t *testing.T) {
	for _, names := range []string{"ttft_s,tpot_s", "TTFT,Tpot", "ttft,itl", "ttft_s,itl_s"} {
		got, err := ReadTable(strings.NewReader(names+",osl,isl,Concurrency\n0.25,0.0625,64,128,2\n"), UnitByName)
		if err != nil {
			t.Errorf("%s: %v", names, err)
		} else if row := got.Groups[0].Rows[0]; row != (Row{2, 2, 128, 64, 250, 62.5}) {
			t.Errorf("%s: %+v", names, row)
		}
	}
}

func TestReadTableGroupsByEngine(t *testing.T) {
	const text = `id,backend,model,gpu,precision,mode,isl,osl,batch_size,tp,concurrency,ttft_ms,tpot_ms
a,vllm,m,h100,fp8,agg,128,64,1,2,1,20,6
b,trtllm,m,h100,fp8,agg,128,64,1,2,1,20,6
c,vllm,m,h100,fp8,Aggregated,128,64,1,2,4,20,6
d,vllm,m,h100,fp8,disagg,128,64,,,4,20,6
e,vllm,m,h100,fp8,agg,128,64,,2,,20,6
f,vllm,m,h100,,,128,64,,10,4,20,6
g,vllm,m,h100,,agg,128,64,,,4,20,6
`
	got, err := ReadTable(strings.NewReader(text), UnitByName)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, g := range got.Groups {
		keys = append(keys, g.String())
	}
	want := []string{"m on h100, trtllm, fp8, TP 2", "m on h100, vllm", "m on h100, vllm, fp8, TP 2", "m on h100, vllm, TP 10"}
	if !reflect.DeepEqual(keys, want) || len(got.Groups[2].Rows) != 2 || got.Groups[2].Rows[1].Line != 4 {
		t.Errorf("groups %q of %+v", keys, got.Groups)
	}
	if got.Disaggregated != 1 || got.Incomplete != 1 {
		t.Errorf("%d disaggregated and %d incomplete rows, want 1 and 1", got.Disaggregated, got.Incomplete)
	}
	if !got.Names("engine") || !got.Names("tp") || got.Names("id") {
		t.Errorf("columns %q", got.Columns)
	}
}

func TestReadTableReportsErrorsWithTheirLines(t *testing.T) {
	const header = "concurrency,isl,osl,ttft_ms,tpot_ms,tp\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"the file is empty", "concurrency,isl,osl,ttft_ms,tpot_ms"}},
		{"no rows", header, []string{"no rows to fit: 0 are of engines"}},
		{"columns", "\nconcurrency,isl,ttft_ms,ttft,tpt\n", []string{"line 2: the header has 2 columns for ttft, ttft_ms and ttft", "no column for osl; name one osl", "name one itl or itl_ms or itl_s or itl_us or tpot or"}},
		{"several", header + "1,2,3,4,5,1\nmany,-2,3,4,5,0\n\n1,2,3\n1,2,1,Inf,5,1.5\n1,0x,3,4,,\n", []string{
			`line 3: concurrency "many": write a number`, `line 3: tp "0": write a whole number`, "line 5: 3 fields; the header needs 6",
			"line 6: osl 1 is not from 2", "line 6: TTFT in milliseconds +Inf", `line 6: tp "1.5"`, `line 7: isl "0x": write a number`,
		}},
		{"one in seconds", header + "1,2,3,4,0.005,1\n1,2,3,4,5,1\n1,2,3,4,5,1\n", []string{"line 2: TPOT in milliseconds 0.005 is not from 0.05", "the name of the column gives the unit"}},
		{"quotes", header + "\"1\"x,2,3,4,5,1\n", []string{"line 2:"}},
		{"many", header + strings.Repeat("x,2,3,4,5,1\n", 40), []string{"line 11:", "reading stopped after 10 errors"}},
	} {
		got, err := ReadTable(strings.NewReader(c.text), UnitByName)
		if err == nil || len(got.Groups) > 0 {
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

func TestReadTableAsksAboutUnlikelyUnits(t *testing.T) {
	for _, c := range []struct {
		name, text string
		confirm    Unit   // of the columns
		want       string // empty: no question
	}{
		{"seconds as ms", "concurrency,isl,osl,ttft_ms,tpot_ms\n1,128,64,0.05,0.008\n8,128,64,0.06,0.009\n", Milliseconds,
			"the median TPOT is 0.0085 ms by the column tpot_ms, which is not from 0.5 to 500 ms; are the times in another unit? They look like seconds: write --unit s if they are, or --unit ms to confirm"},
		{"ms as seconds", "concurrency,isl,osl,ttft,tpot\n1,128,64,50,8\n", Seconds,
			"the median TPOT is 8000 ms by the column tpot, which is not from 0.5 to 500 ms; are the times in another unit? They look like milliseconds: write --unit ms if they are, or --unit s to confirm"},
		{"us as ms", "concurrency,isl,osl,ttft_ms,itl_ms\n1,128,64,50000,8000\n", Milliseconds,
			"by the column itl_ms, which is not from 0.5 to 500 ms; are the times in another unit? They look like microseconds"},
		{"slow", "concurrency,isl,osl,ttft_ms,tpot_ms\n1,128,64,900,501\n", Milliseconds, "the median TPOT is 501 ms"},
		{"fast", "concurrency,isl,osl,ttft_ms,tpot_ms\n1,128,64,900,0.49\n", Milliseconds, "the median TPOT is 0.49 ms"},
		{"TTFT in seconds", "concurrency,isl,osl,ttft_ms,tpot_ms\n1,128,64,0.05,8\n", Milliseconds,
			"the median TTFT is 0.05 ms by the column ttft_ms, but TPOT is 8 ms; a first token takes an iteration at least. Are the two in different units?"},
		{"at the limit", "concurrency,isl,osl,ttft_ms,tpot_ms\n1,128,64,900,500\n", Milliseconds, ""},
		{"one slow row", "concurrency,isl,osl,ttft_ms,tpot_ms\n1,128,64,90,5\n2,128,64,90,6\n64,8192,64,90000,900\n", Milliseconds, ""},
		{"microseconds", "concurrency,isl,osl,ttft_us,tpot_us\n1,128,64,50000,8000\n", Microseconds, ""},
	} {
		got, err := ReadTable(strings.NewReader(c.text), UnitByName)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(got.Groups) > 0):
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
		// A unit that is given is not in question; bounds remain.
		if _, err := ReadTable(strings.NewReader(c.text), c.confirm); err != nil && !strings.Contains(err.Error(), "is not from 0.05 to 10000") {
			t.Errorf("%s, confirmed: %v", c.name, err)
		}
	}
}

func TestReadTableTakesTheUnitThatIsGiven(t *testing.T) {
	const text = "concurrency,isl,osl,ttft_ms,tpot_s\n1,128,64,40,0.008\n"
	for unit, want := range map[Unit]Row{UnitByName: {2, 1, 128, 64, 40, 8}, Seconds: {2, 1, 128, 64, 40_000, 8}} {
		got, err := ReadTable(strings.NewReader(text), unit)
		if err != nil || got.Groups[0].Rows[0] != want {
			t.Errorf("unit %q: %+v, %v; want %+v", unit, got.Groups, err, want)
		}
	}
}

func TestReadTableReturnsTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{"", "concurrency,isl,osl,ttft_ms,tpot_ms\n"} {
		_, err := ReadTable(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(text))), UnitByName)
		if text != "" && !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("got %v", err)
		}
		if _, err := ReadTable(iotest.ErrReader(broken), UnitByName); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
}

// A table that is read is fitted to a valid cost, or rejected with a reason.
func FuzzReadTable(f *testing.F) {
	f.Add("concurrency,isl,osl,ttft_ms,tpot_ms\n1,128,64,21.5,6.25\n64,1024,1000,240,9.5\n")
	f.Add("backend,model,gpu,precision,mode,isl,osl,tp,concurrency,ttft,tpot\nvllm,m,h100,fp8,agg,128,64,2,1,.020,.006\nvllm,m,h100,fp8,agg,8192,2,2,1e6,99999,9.9\n")
	f.Add("concurrency,isl,osl,ttft_ms,itl_ms\n1,1,2,.001,.05\n1000000,1e7,1e7,1e8,1e4\n1,1e7,2,1e8,.05\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadTable(strings.NewReader(text), UnitByName)
		if err != nil {
			if len(table.Groups) > 0 {
				t.Error("rows beside an error")
			}
			return
		}
		for _, g := range table.Groups {
			if len(g.Rows) == 0 {
				t.Errorf("%s has no rows", g.Key)
			}
			if len(g.Rows) > 30 {
				continue
			}
			result, err := Fit(g.Rows, 0)
			if err != nil {
				if !contradicts(err) {
					t.Errorf("%s: %v", g.Key, err)
				}
				continue
			}
			if err := result.Cost.Check(); err != nil || result.TPOT.Mean != result.TPOT.Mean || result.TTFT.Mean != result.TTFT.Mean {
				t.Errorf("%s: %+v, %v", g.Key, result, err)
			}
		}
	})
}

// contradicts reports whether an error of Fit is about rows that are valid one by one.
func contradicts(err error) bool {
	return slices.ContainsFunc([]string{"a cost that no engine has", "the fit misses TPOT by", "TPOT falls by more than"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}
