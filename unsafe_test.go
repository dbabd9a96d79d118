package sluice_test

import "unsafe"

func stringData(s string) *byte { return unsafe.StringData(s) }
