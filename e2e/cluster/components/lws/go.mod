module github.com/wva-project/wva/e2e/cluster/components/lws

go 1.26.0

require sigs.k8s.io/lws v0.8.0 // indirect
