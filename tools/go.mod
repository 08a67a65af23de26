module github.com/zkrecipes/zkrecipes/tools

go 1.26
