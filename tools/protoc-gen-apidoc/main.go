// Command protoc-gen-apidoc is a plugin of buf that writes the reference page of an API in
// Markdown: every RPC, message and field with its type and its comment.
package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	protogen.Options{}.Run(func(plugin *protogen.Plugin) error {
		plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL)
		for _, file := range plugin.Files {
			if file.Generate {
				writePage(plugin.NewGeneratedFile("api.md", ""), file)
			}
		}
		return nil
	})
}

func writePage(page *protogen.GeneratedFile, file *protogen.File) {
	page.P("# API")
	page.P()
	page.P("<!-- \"make generate\" writes this file from ", file.Desc.Path(), ". -->")
	page.P()
	page.P(paragraphs(fileComment(file)))
	page.P()
	page.P("The package is `", file.Desc.Package(), "`. The server has reflection, so `grpcurl` needs no proto file.")
	for _, service := range file.Services {
		page.P()
		page.P("## ", service.Desc.Name())
		page.P()
		page.P(paragraphs(service.Comments.Leading))
		for _, method := range service.Methods {
			page.P()
			page.P("### ", method.Desc.Name())
			page.P()
			page.P("Request: ", link(method.Input.Desc), ". Response: ", link(method.Output.Desc), ".")
			page.P()
			page.P(paragraphs(method.Comments.Leading))
		}
	}
	for _, message := range file.Messages {
		page.P()
		page.P("## ", message.Desc.Name())
		page.P()
		page.P(paragraphs(message.Comments.Leading))
		page.P()
		page.P("| field | type | meaning |")
		page.P("|---|---|---|")
		for _, field := range message.Fields {
			page.P("| `", field.Desc.Name(), "` | ", typeOf(field), " | ", line(field.Comments.Leading), " |")
		}
	}
}

// typeOf returns the type of a field as the reader of JSON or a client sees it.
func typeOf(field *protogen.Field) string {
	name := field.Desc.Kind().String()
	if field.Message != nil {
		name = link(field.Message.Desc)
	}
	switch {
	case field.Desc.IsList():
		return "list of " + name
	case field.Desc.HasOptionalKeyword():
		return name + ", may be unset"
	}
	return name
}

// link returns the name of a message, as a link if the page has it.
func link(message protoreflect.MessageDescriptor) string {
	if message.ParentFile().Package() == "google.protobuf" {
		return string(message.FullName())
	}
	return fmt.Sprintf("[%s](#%s)", message.Name(), strings.ToLower(string(message.Name())))
}

// line returns a comment as one line.
func line(comments protogen.Comments) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(string(comments)), " "), "|", `\|`)
}

// paragraphs returns a comment with its paragraphs, each wrapped as it was.
func paragraphs(comments protogen.Comments) string {
	lines := strings.Split(strings.TrimSpace(string(comments)), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// fileComment returns the comment above the syntax line.
func fileComment(file *protogen.File) protogen.Comments {
	const syntax = 12 // the field number of syntax in FileDescriptorProto
	location := file.Desc.SourceLocations().ByPath(protoreflect.SourcePath{syntax})
	return protogen.Comments(location.LeadingComments)
}
