package look

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var auditing = verb.Verb{
	Name: "audit", Usage: "[flags] PATH LOG...", New: verb.New[auditVerb],
	Uses:     []string{"format", "timeout"},
	Synopsis: "Check the grants in a server's transaction logs",
	Help: `Rebuilds the wait queues at and below PATH from the files of one ZooKeeper server, and
checks every grant. It connects to nothing.

    zkrecipes audit /backups /var/lib/zookeeper
    zkrecipes audit -holds /backups/db1 version-2/log.5f version-2/snapshot.5e

LOG is a transaction log, a snapshot, or a directory with them: dataDir or dataLogDir.
Copies are fine if they keep their names. PATH includes the chroot.

It reads locks, shared and priority locks, semaphores, elections and queues of zkrecipes,
Curator and kazoo, and two-phase commits of zkrecipes. These are violations:

    two-holders    more contenders hold than the recipe allows
    beside         contenders of two recipes, which ignore each other, hold at one path
    order          a contender gets ahead of an earlier one
    token          a fencing token is smaller than the one before
    broken         another client deletes a holder's znode, or the claim of a consumer
    late-write     -writes: a write comes after the end of its token's hold
    two-claims     two consumers have the same element of a queue
    stolen         an element is deleted while another consumer has it
    two-decisions  a two-phase commit is decided in two ways

It also reports sessions that expired while they held (expired), holders that another
client has deleted after it asked them to release (revoked), deleted waiters (removed),
elements that no consumer has deleted (unclaimed), and znodes without a session that
block a wait queue (persistent).

A log proves what ZooKeeper granted. It does not prove that a paused process stopped:
for that, give the writes of the application with -writes. Each line of that file is
{"time":"2026-01-02T15:04:05.678Z","token":42}. Times in the logs are those of the
leader's clock.

The report names what the files do not show, such as a missing log. Use a server of the
majority: the last transactions of one that was cut off may never have been committed.

Exit code: 0 if there is no violation. Otherwise:

    1    there is a violation, or reading a file failed
    2    wrong usage, a file that is no log, or no wait queue at PATH; nothing was checked`,
}

type auditVerb struct {
	path   string
	logs   []string
	holds  bool
	writes string
	html   string
}

func (v *auditVerb) Flags(f *flag.FlagSet) {
	f.BoolVar(&v.holds, "holds", false, helptext.Common("first print each hold, on a line of its own"))
	f.StringVar(&v.html, "html", "", helptext.Common("also write a page with timelines to this `file`, one for each wait queue"))
	f.StringVar(&v.writes, "writes", "", "check the application's writes in this `file`")
}

func (v *auditVerb) Arguments(args []string) error {
	if len(args) < 2 {
		return errors.New("give PATH, and then the transaction logs of one server or their directory")
	}
	v.path, v.logs = args[0], args[1:]
	if v.path == "/" {
		return nil
	}
	return recipes.ValidatePath(v.path)
}

func (v *auditVerb) Run(ctx context.Context, t *verb.Tool) error {
	cfg := audit.Config{Path: v.path}
	files, err := txnlog.Find(v.logs...)
	if err == nil && v.writes != "" {
		cfg.Writes, err = readWrites(v.writes)
	}
	if err != nil {
		return exit.Usage("%w", err)
	}
	var timeline audit.Timeline
	cfg.Hold = func(h audit.Hold) error {
		if v.html != "" {
			timeline.Add(h)
		}
		if v.holds {
			return t.Line(h, holdText(h))
		}
		return nil
	}
	if verb.Terminal(t.Stderr) && !t.JSON && !v.holds {
		bar := progressbar.NewOptions64(files.Bytes, progressbar.OptionSetWriter(t.Stderr), progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		defer func() { _ = bar.Finish() }()
		cfg.Progress = func(read, _ int64) { _ = bar.Set64(read) }
	}
	report, err := audit.Audit(ctx, files, cfg)
	if errors.Is(err, audit.ErrInput) {
		return exit.Usage("%w", err)
	}
	if err != nil {
		return err
	}
	if v.html != "" {
		var page bytes.Buffer // written as a whole, or not at all
		if err := timeline.WriteHTML(&page, report); err != nil {
			return err
		}
		if err := verb.Replace(v.html, []byte(printable.Text(page.String())), 0o644); err != nil {
			return err
		}
	}
	if err := t.Result(report, func(w io.Writer) { reportText(w, report) }); err != nil {
		return err
	}
	if len(report.Violations) > 0 {
		return exit.Silently(exit.Failed) // the report shows them
	}
	return nil
}

func readWrites(name string) ([]audit.Write, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := []audit.Write{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var w audit.Write
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil || w.Time.IsZero() || w.Token == 0 {
			return nil, fmt.Errorf(`%s:%d: not a write such as {"time":"2026-01-02T15:04:05.678Z","token":42}: %.100q`, name, n, lines.Text())
		}
		all = append(all, w)
	}
	return all, lines.Err()
}

const stamp = "2006-01-02T15:04:05.000Z07:00"

func holdText(h audit.Hold) string {
	from, to := "before the logs", "the end of the logs"
	if !h.Granted.IsZero() {
		from = h.Granted.Format(stamp)
	}
	if !h.Ended.IsZero() {
		to = h.Ended.Format(stamp)
	}
	return fmt.Sprintf("%s %s %s token %d from %s to %s %s %s", h.Line, h.Znode, h.Session, h.Token, from, to, cmp.Or(h.EndedBy, "held"), verb.Printable([]byte(h.Data)))
}

// mostLines and mostFindings limit the text. JSON has all.
const (
	mostLines    = 50
	mostFindings = 20
)

func reportText(w io.Writer, r *audit.Report) {
	verb.Row(w, "%s in %s, from 0x%x (%s) to 0x%x (%s)", english.Count(r.Transactions, "transaction"), english.Count(r.Logs, "log"), r.From.Zxid, r.From.Time.Format(stamp), r.To.Zxid, r.To.Time.Format(stamp))
	fmt.Fprintln(w)
	linesText(w, r.Lines)
	verb.Table("QUEUE\tPUT\tTAKEN\tRECEIVED\tAGAIN\tACKED\tDEAD\tDELETED\tLEFT\tAGE P50\tP99\tOLDEST", r.Queues[:min(len(r.Queues), mostLines)], func(q *audit.Queue) []string {
		return slices.Concat([]string{q.Path}, numbers(q.Put, q.Taken, q.Received, q.Again, q.Acked, q.Dead, q.Deleted, q.Left), figures(q.Age))
	})(w)
	more(w, len(r.Queues), mostLines, "queue")
	verb.Table("TRANSACTION\tDECIDED\tSESSION\tDECISION", r.Decisions[:min(len(r.Decisions), mostFindings)], func(d audit.Decision) []string {
		return []string{d.Path, d.Time.Format(stamp), d.Session, verb.Printable([]byte(d.Text))}
	})(w)
	more(w, len(r.Decisions), mostFindings, "decision")
	fmt.Fprintln(w)
	verb.Row(w, "violations: %d", len(r.Violations))
	findings(w, r.Violations)
	if len(r.Events) > 0 {
		verb.Row(w, "events: %d", len(r.Events))
		findings(w, r.Events)
	}
	if c := r.Writes; c != nil {
		verb.Row(w, "%s: %d while the token's hold stood, %d after its end, %d before its grant (check the clocks), %d with a token that no hold has", english.Count(c.Writes, "write"), c.Held, c.Late, c.Early, c.Unknown)
	}
	for _, gap := range r.Gaps {
		verb.Row(w, "incomplete: %s", gap)
	}
}

func linesText(w io.Writer, lines []*audit.Line) {
	busiest := slices.Clone(lines)
	slices.SortStableFunc(busiest, func(a, b *audit.Line) int { return cmp.Compare(b.Grants, a.Grants) })
	verb.Table("PATH\tKIND\tGRANTS\tWAITED\tP50\tP99\tWORST\tHELD P50\tP99\tLONGEST\tEXPIRED\tBROKEN\tHOLD NOW\tWAIT NOW", busiest[:min(len(busiest), mostLines)], func(l *audit.Line) []string {
		kind := l.Kind
		if l.Permits > 0 {
			kind += fmt.Sprintf(":%d", l.Permits)
		}
		if verb.OtherLibrary(recipes.Dialect(l.Dialect)) {
			kind += "," + l.Dialect
		}
		return slices.Concat([]string{l.Path, kind}, numbers(l.Grants, l.Wait.Count()), figures(l.Wait), figures(l.Hold),
			numbers(l.Ended[audit.Expired], l.Ended[audit.Broken], l.Holding, l.Waiting))
	})(w)
	more(w, len(busiest), mostLines, "line")
	for _, l := range busiest[:min(len(busiest), mostLines)] {
		if l.Left > 0 || l.Overtaken > 0 {
			verb.Row(w, "%s: %s left without a grant, after %v at most; one waiter saw %s granted", l.Path, english.Count(l.Left, "contender"), l.InVain.Quantile(1), english.Count(l.Overtaken, "later contender"))
		}
	}
}

func findings(w io.Writer, all []audit.Finding) {
	for _, f := range all[:min(len(all), mostFindings)] {
		verb.Row(w, "  %s 0x%x %s %s: %s", f.Time.Format(stamp), f.Zxid, f.Line, f.Kind, f.Text)
	}
	more(w, len(all), mostFindings, "findings")
}

func more(w io.Writer, n, most int, what string) {
	if n > most {
		verb.Row(w, "  ... and %s: -format=json shows all", english.Count(n-most, "more "+what))
	}
}

// figures returns the median, the 99th percentile and the maximum, as cells of a table.
func figures(d audit.Durations) []string {
	if d.Count() == 0 {
		return []string{"-", "-", "-"}
	}
	return []string{d.Quantile(0.5).String(), d.Quantile(0.99).String(), d.Quantile(1).String()}
}

func numbers(all ...int) []string { return verb.List(all, strconv.Itoa) }
