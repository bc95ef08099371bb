// Command gateway is an object store for tests: versitygw, an S3 gateway, on a folder. A module of its own, since what
// such a server depends on is more than all else in this repository.
//
// It runs until its standard input ends.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"
)

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: gateway FOLDER ADDRESS REGION ACCESS-KEY SECRET-KEY")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(folder, address, region, access, secret string) error {
	// What is known of an object besides its content: a temporary folder may be on a file system without attributes.
	objects, sidecar := filepath.Join(folder, "objects"), filepath.Join(folder, "meta")
	for _, dir := range []string{objects, sidecar} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	about, err := meta.NewSideCar(sidecar)
	if err != nil {
		return err
	}
	files, err := posix.New(objects, about, posix.PosixOpts{SideCarDir: sidecar, NewDirPerm: 0o700})
	if err != nil {
		return err
	}
	api, err := s3api.New(files, middlewares.RootUserConfig{Access: access, Secret: secret}, region,
		auth.NewIAMServiceSingle(auth.Account{Access: access, Secret: secret, Role: auth.RoleAdmin}), nil, nil, nil, nil,
		s3api.WithQuiet(), s3api.WithKeepAlive(), s3api.WithConcurrencyLimiter(256, 256), s3api.WithHealth("/ready"),
		s3api.WithMiddleware("/", oneMechanism))
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return api.ServeMultiPort([]string{address})
}

// oneMechanism refuses a signed address that comes with credentials besides, as S3 does. The gateway lets it pass.
func oneMechanism(c fiber.Ctx) error {
	if c.Query("X-Amz-Signature") != "" && c.Get("Authorization") != "" {
		return c.Status(fiber.StatusBadRequest).SendString("Only one auth mechanism allowed")
	}
	return c.Next()
}
