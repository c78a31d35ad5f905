module github.com/wva-project/wva/e2e/cluster/components/prometheusoperator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0 // indirect
