package main

import (
	"os"
	"path/filepath"
)

// functions are zips of the Lambda function. Its user adds sluice.yaml.
func (r *release) functions() error {
	for _, arch := range []string{"amd64", "arm64"} {
		for name, tags := range map[string]string{"lambda": "lambda.norpc", "lambda-tracing": "lambda.norpc,tracing"} {
			binary := filepath.Join(r.work, name+"_"+arch)
			if err := r.build(target{"linux", arch}, "./cmd/sluice-lambda", tags, binary); err != nil {
				return err
			}
			data, err := os.ReadFile(binary) //nolint:gosec // just built
			if err != nil {
				return err
			}
			licences, err := r.licences(binary)
			if err != nil {
				return err
			}
			files := []file{{name: "bootstrap", data: data, mode: 0o755}, r.licence(), licences}
			if err := r.zip(r.path("%s_%s.zip", name, arch), files); err != nil {
				return err
			}
			if err := r.bom(r.path("%s_%s.cdx.json", name, arch), binary); err != nil {
				return err
			}
		}
	}
	return nil
}
