// Package kubernetes_test checks examples/kubernetes: the manifests have no field that the API does
// not know, and their commands do what the page says. Processes take the place of pods.
package kubernetes_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

const folder = "../../examples/kubernetes"

func TestMain(m *testing.M) { leaktest.Main(m) }

// strict decodes a manifest as the API server does with fieldValidation=Strict: an unknown, misspelled
// or repeated field is an error, and so is a value of another type.
func strict(manifest []byte, into any) error {
	text, err := yaml.YAMLToJSONStrict(manifest)
	if err != nil {
		return err
	}
	strictErrors, err := json.UnmarshalStrict(text, into)
	return errors.Join(append(strictErrors, err)...)
}

// object is a manifest of any kind.
type object struct {
	metav1.TypeMeta
	value any
	pod   *corev1.PodTemplateSpec // nil for a Service
}

// objects decodes a file.
func objects(t *testing.T, file string) (all []object) {
	t.Helper()
	for _, manifest := range bytes.Split(must.Get(os.ReadFile(filepath.Join(folder, file)))(t), []byte("\n---\n")) {
		var o object
		must.Do(t, yaml.Unmarshal(manifest, &o.TypeMeta))
		switch o.APIVersion + " " + o.Kind {
		case "apps/v1 Deployment":
			d := new(appsv1.Deployment)
			o.value, o.pod = d, &d.Spec.Template
		case "batch/v1 CronJob":
			c := new(batchv1.CronJob)
			o.value, o.pod = c, &c.Spec.JobTemplate.Spec.Template
		case "batch/v1 Job":
			j := new(batchv1.Job)
			o.value, o.pod = j, &j.Spec.Template
		case "v1 Service":
			o.value = new(corev1.Service)
		default:
			t.Fatalf("%s: no test knows the kind %s %s", file, o.APIVersion, o.Kind)
		}
		if err := strict(manifest, o.value); err != nil {
			t.Errorf("%s: %s: %v", file, o.Kind, err)
		}
		all = append(all, o)
	}
	return all
}

func TestManifestsHaveOnlyFieldsOfTheAPI(t *testing.T) {
	files := must.Get(filepath.Glob(filepath.Join(folder, "*.yaml")))(t)
	if len(files) < 4 {
		t.Errorf("found only %q", files)
	}
	for _, file := range files {
		for _, o := range objects(t, filepath.Base(file)) {
			if o.pod != nil {
				checkPod(t, filepath.Base(file), o.pod.Spec)
			}
		}
	}
	if err := strict([]byte("spec: {replica: 3}"), new(appsv1.Deployment)); err == nil {
		t.Error("a misspelled field is no error")
	}
}

// checkPod checks what every pod of the examples needs.
func checkPod(t *testing.T, file string, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	if s := c.SecurityContext; !*pod.SecurityContext.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 {
		t.Errorf("%s: the container is not confined", file)
	}
	if c.VolumeMounts[0].MountPath != "/tmp" || c.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Errorf("%s: the plugin has no place for its socket", file)
	}
	if c.Env[0].Name != "ZKRECIPES_SERVERS" {
		t.Errorf("%s: the servers are not named", file)
	}
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil {
			continue
		}
		port := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal })
		at := slices.Index(c.Args, "-status")
		if port < 0 || at < 0 || c.Args[at+1] != ":8080" || c.Ports[port].ContainerPort != 8080 {
			t.Errorf("%s: a probe asks the port %v, and -status is elsewhere", file, probe.HTTPGet.Port)
		}
	}
}

// The Service sends traffic to the pods of the Deployment, and to the port of their command.
func TestTheServiceSelectsTheLeader(t *testing.T) {
	all := objects(t, "leader.yaml")
	d, s := all[0].value.(*appsv1.Deployment), all[1].value.(*corev1.Service)
	if d.Spec.Template.Labels["app"] != s.Spec.Selector["app"] || d.Spec.Selector.MatchLabels["app"] != s.Spec.Selector["app"] {
		t.Errorf("the pods have the labels %v, and the Service selects %v", d.Spec.Template.Labels, s.Spec.Selector)
	}
	if name := s.Spec.Ports[0].TargetPort.StrVal; !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == name }) {
		t.Errorf("the pods have no port %q", name)
	}
	if unavailable := d.Spec.Strategy.RollingUpdate.MaxUnavailable.StrVal; unavailable != "100%" {
		t.Errorf("maxUnavailable is %s: a rollout would wait for a second leader", unavailable)
	}
}

// TERM comes after preStop. Then the command has its grace, before KILL.
func TestPodsHaveTimeToStop(t *testing.T) {
	for _, file := range []string{"leader.yaml", "cron.yaml"} {
		pod := objects(t, file)[0].pod.Spec
		c, grace := pod.Containers[0], int64(20)
		if i := slices.Index(c.Args, "-grace"); i < 0 || c.Args[i+1] != "20s" {
			t.Fatalf("%s: %s", file, strings.Join(c.Args, " "))
		}
		if c.Lifecycle != nil {
			grace += c.Lifecycle.PreStop.Sleep.Seconds
		}
		if *pod.TerminationGracePeriodSeconds < grace+5 {
			t.Errorf("%s: KILL comes after %d s, and the command may take %d s", file, *pod.TerminationGracePeriodSeconds, grace)
		}
	}
}
