package audit

import (
	"fmt"
	"html/template"
	"io"
	"math/bits"
	"time"
)

// Timeline collects holds for a page that shows them over time. It keeps how long each line was
// held in each of 1,024 spans of time, and merges spans when the logs are longer. So its memory
// does not grow with the number of holds.
//
// gonum.org/v1/plot was tried for the strips. It adds eight megabytes to the tool, needs a plotter of
// our own, and cannot name a holder under the mouse.
type Timeline struct {
	start, span int64 // milliseconds
	strips      map[string]*strip
	open        []Hold // at the end of the logs
}

const (
	spans      = 1024
	mostStrips = 200 // lines on a page
)

// strip is one line.
type strip struct {
	held  [spans]int64 // milliseconds of all holders
	ended [spans]uint8 // 1: a session has expired, 2: a hold was broken

	// holder describes the only holder, "" for none; several: there were more.
	holder [spans]string
}

const several = "several holders"

// with returns the holder of two spans that become one.
func with(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return several
}

// Add adds a hold, as Config.Hold gets it.
func (t *Timeline) Add(h Hold) {
	key := h.Queue()
	s := t.strips[key]
	switch {
	case h.Ended.IsZero() && h.EndedBy == "":
		t.open = append(t.open, h)
		return
	case h.Granted.IsZero() || h.Ended.IsZero(): // where the logs have a gap
		return
	case t.strips == nil:
		t.start, t.span, t.strips = h.Granted.UnixMilli(), 1, map[string]*strip{}
	}
	if s == nil {
		if len(t.strips) >= mostStrips {
			return
		}
		s = &strip{}
		t.strips[key] = s
	}
	from := max(h.Granted.UnixMilli()-t.start, 0)
	to := max(h.Ended.UnixMilli()-t.start, from) // the clock can jump back
	for to/t.span >= spans {
		t.merge()
	}
	holder := fmt.Sprintf("%s, session %s, token %d, held for %v %s", h.Znode, h.Session, h.Token, h.Ended.Sub(h.Granted), h.Data)
	for at := from / t.span; at <= to/t.span; at++ {
		s.holder[at] = with(s.holder[at], holder)
		s.held[at] += min(to, (at+1)*t.span) - max(from, at*t.span)
	}
	switch mark := &s.ended[to/t.span]; h.EndedBy {
	case Expired:
		*mark = max(*mark, 1)
	case Broken:
		*mark = 2
	}
}

// merge makes each span twice as long.
func (t *Timeline) merge() {
	t.span *= 2
	for _, s := range t.strips {
		for i := range spans {
			j := 2 * i
			if j >= spans {
				s.held[i], s.ended[i], s.holder[i] = 0, 0, ""
				continue
			}
			s.held[i], s.ended[i], s.holder[i] = s.held[j]+s.held[j+1], max(s.ended[j], s.ended[j+1]), with(s.holder[j], s.holder[j+1])
		}
	}
}

// bar is a part of a strip in one color.
type bar struct {
	X, Width, Shade int    // of 8 shades
	Mark            string // the class of a mark
	Holder          string
}

// bars returns the strip's parts. most is the number of holders at full shade.
func (s *strip) bars(span int64, most int) (all []bar) {
	for i, held := range s.held {
		shade := min(8, bits.Len64(uint64(256*held/(span*int64(max(most, 1))))))
		if s.holder[i] != "" {
			shade = max(shade, 1) // a short hold is visible too
		}
		mark := []string{"", "expired", "broken"}[s.ended[i]]
		if last := len(all) - 1; last >= 0 && all[last].Shade == shade && all[last].Mark == "" && mark == "" && all[last].Holder == s.holder[i] {
			all[last].Width++
			continue
		}
		all = append(all, bar{i, 1, shade, mark, s.holder[i]})
	}
	return all
}

// WriteHTML writes the report as a self-contained page.
func (t *Timeline) WriteHTML(w io.Writer, r *Report) error {
	for _, h := range t.open {
		h.Ended, h.EndedBy = r.To.Time, "open"
		t.Add(h)
	}
	type row struct {
		*Line
		Bars []bar
	}
	page := struct {
		*Report
		Rows  []row
		From  string
		Span  time.Duration
		Used  int64 // spans up to the end of the logs
		Ticks []string
		Most  int
	}{Report: r, From: at(t.start).Format(stamp), Span: time.Duration(t.span) * time.Millisecond, Most: mostStrips}
	if t.strips != nil {
		page.Used = min(spans, max(1, (r.To.Time.UnixMilli()-t.start)/t.span+1))
		page.Ticks = ticks(t.start, page.Used*t.span)
	}
	for _, l := range r.Lines {
		var bars []bar
		if s := t.strips[l.Queue()]; s != nil {
			bars = s.bars(t.span, l.Most)
		}
		page.Rows = append(page.Rows, row{l, bars})
	}
	return pageTemplate.Execute(w, page)
}

// ticks returns the times at the quarters of the strips, as exactly as their distance needs.
func ticks(start, length int64) (all []string) {
	form := "2006-01-02 15:04"
	switch hour := time.Hour.Milliseconds(); {
	case length < hour/60:
		form = "15:04:05.000"
	case length < 24*hour:
		form = "15:04:05"
	}
	for i := range int64(5) {
		all = append(all, at(start+i*length/4).Format(form))
	}
	return all
}

var pageTemplate = template.Must(template.New("audit").Funcs(template.FuncMap{
	"time": func(t time.Time) string { return t.Format(stamp) },
	"p": func(d Durations, q float64) string {
		if d.Count() == 0 {
			return "-"
		}
		return d.Quantile(q).String()
	},
	"quarter": func(i int) int { return i * spans / 4 },
	"several": func() string { return several },
}).Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Audit of {{.Path}}</title>
<style>
body{font:14px system-ui,sans-serif;margin:2em}td,th{text-align:right;padding:2px 8px;white-space:nowrap}td:first-child,th:first-child,.text *{text-align:left}
.text td:last-child{white-space:normal}thead{position:sticky;top:0;background:#fff}i{display:inline-block;width:12px;height:12px;margin:0 2px 0 8px}
svg{display:block;width:1024px;overflow:visible}.strip{height:16px;overflow:hidden;background:repeating-linear-gradient(90deg,#bbb 0 1px,#eee 1px 256px)}text{font-size:12px}path{stroke:#888}
.expired{fill:#e69f00;background:#e69f00}.broken{fill:#d00000;background:#d00000}
.s1{fill:#d6e4f0;background:#d6e4f0}.s2{fill:#b5cfe6}.s3{fill:#94bbdc}.s4{fill:#74a6d1}.s5{fill:#5592c7;background:#5592c7}.s6{fill:#3a7db8}.s7{fill:#2a659a}.s8{fill:#1a4d7c;background:#1a4d7c}
</style>
<h1>Audit of {{.Path}}</h1>
<p>{{.Transactions}} transactions in {{.Logs}} log(s), from {{time .Report.From.Time}} to {{time .Report.To.Time}}. Violations: {{len .Violations}}. Events: {{len .Events}}.</p>
{{range .Gaps}}<p>Incomplete: {{.}}</p>{{end}}
{{with .Writes}}<p>Writes: {{.Writes}}; {{.Held}} while the token's hold stood, {{.Late}} after its end, {{.Early}} before its grant, {{.Unknown}} with a token that no hold has.</p>{{end}}
{{if .Ticks}}<p>The strips begin at {{.From}}, by the leader's clock. A step is {{.Span}}. In a step the line was held <i class="s1"></i>for less than 1 % <i class="s5"></i>for 10 % <i class="s8"></i>for more than half of the time. <i class="expired"></i>A session expired while it held. <i class="broken"></i>Another client deleted a holder's znode. A bar with one holder shows it under the mouse. A line without a strip had no hold whose grant and end are in the logs, or is not among the first {{.Most}}.</p>{{end}}
<table><thead><tr><th>line<th>kind<th>grants<th>waited<th>p50<th>p99<th>worst<th>held p50<th>p99<th>longest</tr>
{{if .Ticks}}<tr><td colspan="10"><svg height="20">{{range $i, $tick := .Ticks}}<path d="M{{quarter $i}} 16v4"/><text x="{{quarter $i}}" y="12" text-anchor="{{if eq $i 0}}start{{else if eq $i 4}}end{{else}}middle{{end}}">{{$tick}}</text>{{end}}</svg></tr>{{end}}</thead>
{{range .Rows}}<tr><td>{{.Path}}<td>{{.Kind}}{{if .Permits}}:{{.Permits}}{{end}}, {{.Dialect}}<td>{{.Grants}}<td>{{.Wait.Count}}<td>{{p .Wait 0.5}}<td>{{p .Wait 0.99}}<td>{{p .Wait 1}}<td>{{p .Hold 0.5}}<td>{{p .Hold 0.99}}<td>{{p .Hold 1}}</tr>
{{if .Bars}}<tr><td colspan="10"><svg class="strip" viewBox="0 0 {{$.Used}} 16" preserveAspectRatio="none">{{range .Bars}}{{if or .Shade .Mark}}<g>{{if .Holder}}{{if ne .Holder several}}<title>{{.Holder}}</title>{{end}}{{end}}{{if .Shade}}<rect x="{{.X}}" width="{{.Width}}" height="16" class="s{{.Shade}}"/>{{end}}{{if .Mark}}<rect x="{{.X}}" width="2" height="16" class="{{.Mark}}"/>{{end}}</g>{{end}}{{end}}</svg></tr>
{{end}}{{end}}</table>
{{define "findings"}}<table class="text"><tr><th>time<th>zxid<th>line<th>kind<th>what</tr>{{range .}}<tr><td>{{time .Time}}<td>{{printf "0x%x" .Zxid}}<td>{{.Line}}<td>{{.Kind}}<td>{{.Text}}</tr>{{end}}</table>{{end}}
{{if .Violations}}<h2>Violations</h2>{{template "findings" .Violations}}{{end}}
{{if .Events}}<h2>Events</h2>{{template "findings" .Events}}{{end}}
{{if .Omitted}}<p>{{.Omitted}} more findings are omitted.</p>{{end}}
`))
