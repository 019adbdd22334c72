// Prints how Go's encoding/json writes a core/v1 pod template: for every struct type reachable from PodTemplateSpec,
// PersistentVolumeClaimSpec and the specs of StatefulSets and Deployments its members in declaration order. The output
// is podschema.json, which api/podtemplate.py reads.
//
//	go run . > podschema.json
//
// Per member: the JSON name, then flags ("o" omitempty, "z" omitzero, "p" pointer), then the kind, and for struct, list
// and map the name or kind of what is inside.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type schema map[string][][]string

// Types that write themselves in their own way.
var special = map[reflect.Type]string{
	reflect.TypeOf(resource.Quantity{}):  "quantity",
	reflect.TypeOf(metav1.Time{}):        "time",
	reflect.TypeOf(metav1.MicroTime{}):   "time",
	reflect.TypeOf(intstr.IntOrString{}): "intorstring",
	reflect.TypeOf(metav1.FieldsV1{}):    "any",
}

func (s schema) kind(t reflect.Type) string {
	if name, ok := special[t]; ok {
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.kind(t.Elem())
	case reflect.Struct:
		s.add(t)
		return t.Name()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "[]" + s.kind(t.Elem())
	case reflect.Map:
		return "{}" + s.kind(t.Elem())
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "float"
	default:
		return "int"
	}
}

func (s schema) add(t reflect.Type) {
	if _, known := s[t.Name()]; known {
		return
	}
	s[t.Name()] = nil
	s[t.Name()] = s.members(t)
}

func (s schema) members(t reflect.Type) [][]string {
	members := [][]string{}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			members = append(members, s.members(field.Type)...)
			continue
		}
		if name == "-" {
			continue
		}
		flags := ""
		if strings.Contains(options, "omitempty") {
			flags += "o"
		}
		if strings.Contains(options, "omitzero") {
			flags += "z"
		}
		if field.Type.Kind() == reflect.Pointer {
			flags += "p"
		}
		members = append(members, []string{name, flags, s.kind(field.Type)})
	}
	return members
}

func main() {
	s := schema{}
	s.add(reflect.TypeOf(corev1.PodTemplateSpec{}))
	s.add(reflect.TypeOf(corev1.PersistentVolumeClaimSpec{}))
	s.add(reflect.TypeOf(appsv1.StatefulSetSpec{}))
	s.add(reflect.TypeOf(appsv1.DeploymentSpec{}))
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(s); err != nil {
		panic(err)
	}
}
