module natra.io/go/natra

go 1.23
