module github.com/OWNER/natra/tools/bindings/go

go 1.23
