module github.com/wva-project/wva/tools/protoc-gen-apidoc

go 1.26.0

tool github.com/wva-project/wva/tools/protoc-gen-apidoc

require google.golang.org/protobuf v1.36.12
