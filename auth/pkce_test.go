package auth_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestPKCE(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		var asked, polled []url.Values
		keep := func(forms *[]url.Values, answer string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				*forms = append(*forms, r.PostForm)
				body("application/json", answer)(w, r)
			}
		}
		p.serve(t, "as.test", documents{
			"/device": keep(&asked, `{"device_code":"d","user_code":"U","verification_uri":"https://as.test/activate","expires_in":900}`),
			"/token":  keep(&polled, `{"access_token":"a"}`),
		})
		base := auth.DeviceFlow{
			Config: oauth2.Config{ClientID: "c", Endpoint: oauth2.Endpoint{
				DeviceAuthURL: "https://as.test/device", TokenURL: "https://as.test/token",
			}},
			HTTPClient:  p.client(),
			Prompter:    auth.PrompterFunc(func(context.Context, auth.Prompt) error { return nil }),
			Params:      url.Values{"audience": {"api"}},
			TokenParams: url.Values{"resource": {"urn:api"}},
		}
		for range 2 {
			flow := base
			flow.PKCE = true
			if _, err := flow.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := base.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			verifier := polled[i].Get("code_verifier")
			if len(verifier) < 43 || asked[i].Get("code_challenge") != oauth2.S256ChallengeFromVerifier(verifier) || asked[i].Get("code_challenge_method") != "S256" {
				t.Errorf("login %d: asked %v, polled %v", i+1, asked[i], polled[i])
			}
			if asked[i].Has("code_verifier") || polled[i].Has("code_challenge") || asked[i].Get("audience") != "api" || polled[i].Get("resource") != "urn:api" {
				t.Errorf("login %d: asked %v, polled %v", i+1, asked[i], polled[i])
			}
		}
		if polled[0].Get("code_verifier") == polled[1].Get("code_verifier") {
			t.Error("two logins had the same verifier")
		}
		if asked[2].Has("code_challenge") || polled[2].Has("code_verifier") || len(base.Params) != 1 || len(base.TokenParams) != 1 {
			t.Error("the flow itself was changed")
		}
	})
}
