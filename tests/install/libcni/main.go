// SPDX-License-Identifier: BSD-2-Clause

// Prints, for each directory that is named, what libcni makes of its first list, in the
// way of containerd: a line with the JSON of a reading, which is null if libcni refuses it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/containernetworking/cni/libcni"
)

type reading struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Types   []string `json:"types"`
}

func read(file string) (*libcni.NetworkConfigList, error) {
	if strings.HasSuffix(file, ".conflist") {
		return libcni.ConfListFromFile(file)
	}
	conf, err := libcni.ConfFromFile(file)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf)
}

func first(dir string) (*reading, error) {
	files, err := libcni.ConfFiles(dir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no list")
	}
	sort.Strings(files)
	list, err := read(files[0])
	if err != nil {
		return nil, err
	}
	found := &reading{Name: list.Name, Version: list.CNIVersion}
	for _, plugin := range list.Plugins {
		found.Types = append(found.Types, plugin.Network.Type)
	}
	return found, nil
}

func main() {
	for _, dir := range os.Args[1:] {
		found, err := first(dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", dir, err)
		}
		line, _ := json.Marshal(found)
		fmt.Println(string(line))
	}
}
