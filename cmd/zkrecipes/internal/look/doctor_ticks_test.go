package look

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// Doctor warns if the session timeout has fewer ticks than the proof of a grant needs.
func TestDoctorComparesTheTimeoutWithTheTick(t *testing.T) {
	const voter, observer = "clientPort=2181\ntickTime=2000\nminSessionTimeout=1000\npeerType=0\n", "tickTime=2000\npeerType=1\n"
	for _, test := range []struct {
		answer  string
		timeout time.Duration
		want    string // the status; "": no finding
		says    string
	}{
		{voter, 10 * time.Second, fine, "5 ticks of 2s; at least 2"},
		{voter, 4 * time.Second, fine, "2 ticks"},
		{voter, 3999 * time.Millisecond, warn, "at least 4s"},
		{observer, 8 * time.Second, fine, "observer, "},
		{observer, 7 * time.Second, warn, "at least 8s"},
		{"conf is not executed because it is not in the whitelist.\n", time.Second, "", ""},
		{"tickTime=many\n", time.Second, "", ""},
		{"", time.Second, "", ""},
	} {
		listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		asked := make(chan string, 1)
		go func() {
			c, err := listener.Accept()
			if err != nil {
				asked <- err.Error()
				return
			}
			defer c.Close()
			word := make([]byte, 4)
			_, _ = io.ReadFull(c, word)
			_, _ = io.WriteString(c, test.answer)
			asked <- string(word)
		}()
		v := &doctorVerb{}
		v.ticks(t.Context(), nil, listener.Addr().String(), test.timeout)
		if word := <-asked; word != "conf" {
			t.Errorf("asked %q", word)
		}
		listener.Close()
		switch {
		case test.want == "" && len(v.findings) == 0:
		case len(v.findings) != 1 || v.findings[0].Status != test.want ||
			!strings.Contains(v.findings[0].Detail+v.findings[0].Advice, test.says):
			t.Errorf("%q with a timeout of %v: %+v", test.answer, test.timeout, v.findings)
		}
	}
}
