package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// DynamoDB Local sends its errors without a checksum, which the SDK warns of.
func TestCreateAgainPrintsNoWarnings(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceInUseException","message":"Table already exists"}`)
	}))
	defer srv.Close()
	env := map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "SLUICE_ENDPOINT_DYNAMODB": srv.URL}
	for name, value := range env {
		t.Setenv(name, value) // the SDK reads it
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = log
	err = create(t.Context(), nil, func(name string) string { return env[name] }, io.Discard)
	os.Stderr = stderr
	if err == nil {
		t.Error("no error of tables that cannot be described")
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(log.Name()); err != nil || len(got) > 0 {
		t.Errorf("it prints %q, %v", got, err)
	}
}
