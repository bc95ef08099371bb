package auth_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/endpoints"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// filled are values for the placeholders of every profile.
var filled = map[string]map[string]string{
	"auth0": {"domain": "tenant.auth0.test"}, "entra": {"tenant": "0f3e2d1c-0000-4000-8000-000000000000"}, "gitlab": {"domain": "git.example.com:8443"},
	"keycloak": {"domain": "sso.example.com", "realm": "demo"}, "okta": {"domain": "dev.okta.test", "server": "default"},
}

func TestProfiles(t *testing.T) {
	var names []string
	for _, p := range auth.Profiles() {
		names = append(names, p.Name)
		if found, ok := auth.ProfileNamed(p.Name); !ok || found.Title != p.Title {
			t.Errorf("%s is not found by its name", p.Name)
		}
		if p.Unsupported != "" {
			continue
		}
		full, err := p.With(filled[p.Name])
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		for _, address := range []string{full.Issuer, full.DeviceAuthURL, full.TokenURL} {
			if u, err := url.Parse(address); err != nil || address != "" && u.Scheme != "https" || strings.ContainsAny(address, "{}") {
				t.Errorf("%s has the address %q", p.Name, address)
			}
		}
		if (full.DeviceAuthURL == "") != (full.TokenURL == "") || full.TokenURL == "" && full.Issuer == "" {
			t.Errorf("%s has nowhere to go: %+v", p.Name, full)
		}
		if full.ReuseGrace < 0 || full.ReuseGrace > 0 && !full.SingleUseRefresh {
			t.Errorf("%s has a grace of %v", p.Name, full.ReuseGrace)
		}
	}
	if want := []string{"auth0", "aws", "entra", "github", "gitlab", "google", "keycloak", "okta", "twitch"}; !slices.Equal(names, want) {
		t.Errorf("profiles %v, want %v", names, want)
	}
	if _, ok := auth.ProfileNamed("nobody"); ok {
		t.Error("a profile of nobody's")
	}
	auth.Profiles()[0].Placeholders["domain"] = "changed"
	if auth.Profiles()[0].Placeholders["domain"] != "" {
		t.Error("a caller can change the profiles")
	}
}

func TestProfilePlaceholders(t *testing.T) {
	tests := []struct {
		profile string
		values  map[string]string
		want    string // the issuer, or the token endpoint where there is none; "" is a mistake
	}{
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": "demo"}, "https://sso.example.com/realms/demo"},
		{"keycloak", map[string]string{"domain": "127.0.0.1:8443", "realm": "a.b_c~d-e"}, "https://127.0.0.1:8443/realms/a.b_c~d-e"},
		{"keycloak", map[string]string{"domain": "sso.example.com"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": ""}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": "demo", "tenant": "x"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": ".."}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": "%2e%2e"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": "a/b"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": "a?b"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": "a#b"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com", "realm": "{domain}"}, ""},
		{"keycloak", map[string]string{"domain": "user@sso.example.com", "realm": "demo"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com/evil", "realm": "demo"}, ""},
		{"keycloak", map[string]string{"domain": `sso.example.com\`, "realm": "demo"}, ""},
		{"keycloak", map[string]string{"domain": "https://sso.example.com", "realm": "demo"}, ""},
		{"keycloak", map[string]string{"domain": "sso.example.com:0", "realm": "demo"}, ""},
		{"entra", nil, "https://login.microsoftonline.com/common/oauth2/v2.0/token"},
		{"entra", map[string]string{"tenant": "contoso.example.com"}, "https://login.microsoftonline.com/contoso.example.com/oauth2/v2.0/token"},
		{"gitlab", nil, "https://gitlab.com/oauth/token"},
		{"github", nil, "https://github.com/login/oauth/access_token"},
	}
	for _, tt := range tests {
		p, _ := auth.ProfileNamed(tt.profile)
		full, err := p.With(tt.values)
		got := full.Issuer
		if got == "" {
			got = full.TokenURL
		}
		if got != tt.want {
			t.Errorf("%s with %v: %q, want %q", tt.profile, tt.values, got, tt.want)
		}
		if _, ok := errors.AsType[*auth.ConfigError](err); ok != (tt.want == "") {
			t.Errorf("%s with %v: %v", tt.profile, tt.values, err)
		}
	}
}

// TestProfilesAgreeWithOAuth2 compares with the addresses that package oauth2 has.
func TestProfilesAgreeWithOAuth2(t *testing.T) {
	for name, want := range map[string]oauth2.Endpoint{
		"entra": endpoints.AzureAD(""), "github": endpoints.GitHub, "gitlab": endpoints.GitLab, "google": endpoints.Google, "twitch": endpoints.Twitch,
	} {
		p, _ := auth.ProfileNamed(name)
		full, err := p.With(nil)
		if err != nil {
			t.Fatal(err)
		}
		if full.TokenURL != want.TokenURL || want.DeviceAuthURL != "" && full.DeviceAuthURL != want.DeviceAuthURL {
			t.Errorf("%s: %s and %s, package oauth2 has %s and %s", name, full.DeviceAuthURL, full.TokenURL, want.DeviceAuthURL, want.TokenURL)
		}
	}
}

func TestProfileApplied(t *testing.T) {
	flow := auth.DeviceFlow{
		Config: oauth2.Config{ClientID: "c", ClientSecret: "s", Scopes: []string{"a", "b"}},
		Params: url.Values{"audience": {"api"}},
	}
	for _, p := range auth.Profiles() {
		full, err := p.With(filled[p.Name])
		if err != nil {
			t.Fatal(err)
		}
		got, err := full.Apply(flow)
		switch {
		case p.Unsupported != "":
			e, ok := errors.AsType[*auth.UnsupportedError](err)
			if !ok || !errors.Is(err, errors.ErrUnsupported) || e.Provider != p.Title || !strings.Contains(err.Error(), p.Unsupported) {
				t.Errorf("%s: %v", p.Name, err)
			}
			continue
		case p.TokenURL == "":
			if _, ok := errors.AsType[*auth.ConfigError](err); !ok || !strings.Contains(err.Error(), "ask Metadata") {
				t.Errorf("%s: %v", p.Name, err)
			}
			own := flow
			own.Config.Endpoint = oauth2.Endpoint{DeviceAuthURL: "https://as.test/d", TokenURL: "https://as.test/t"}
			if got, err = full.Apply(own); err != nil || got.Config.Endpoint != own.Config.Endpoint {
				t.Errorf("%s: %v", p.Name, err)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		e := got.Config.Endpoint
		if e.DeviceAuthURL != full.DeviceAuthURL || e.TokenURL != full.TokenURL || e.AuthStyle != oauth2.AuthStyleInParams {
			t.Errorf("%s: %+v", p.Name, e)
		}
		if p.ScopeParam == "" && (got.Params.Encode() != "audience=api" || len(got.Config.Scopes) != 2) ||
			p.ScopeParam != "" && (got.Params.Get(p.ScopeParam) != "a b" || len(got.Config.Scopes) != 0) {
			t.Errorf("%s: %v, scopes %v", p.Name, got.Params, got.Config.Scopes)
		}
	}
	styled := flow
	styled.Config.Endpoint = oauth2.Endpoint{AuthURL: "https://as.test/a", AuthStyle: oauth2.AuthStyleInHeader}
	gitlab, _ := auth.ProfileNamed("gitlab")
	gitlab, _ = gitlab.With(nil)
	if got, err := gitlab.Apply(styled); err != nil || got.Config.Endpoint.AuthStyle != oauth2.AuthStyleInHeader || got.Config.Endpoint.AuthURL != "https://as.test/a" {
		t.Errorf("what the flow has of its own was changed: %+v, %v", got, err)
	}
	if flow.Params.Encode() != "audience=api" || len(flow.Config.Scopes) != 2 {
		t.Error("the flow itself was changed")
	}
	google, _ := auth.ProfileNamed("google")
	if _, err := google.Apply(auth.DeviceFlow{Config: oauth2.Config{ClientID: "c"}}); err == nil || !strings.Contains(err.Error(), "ClientSecret") {
		t.Errorf("%v", err)
	}
	keycloak, _ := auth.ProfileNamed("keycloak")
	if _, err := keycloak.Apply(flow); err == nil || !strings.Contains(err.Error(), "realm is not filled in") {
		t.Errorf("%v", err)
	}
}

func TestProfileMetadata(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		const issuer = "https://sso.test/realms/demo"
		p.serve(t, "sso.test", documents{"/realms/demo" + openIDPath: metadataOf(issuer)})
		d := &auth.Discovery{HTTPClient: p.client()}

		keycloak, _ := auth.ProfileNamed("keycloak")
		if _, err := keycloak.Metadata(t.Context(), d); err == nil {
			t.Error("placeholders were not missed")
		}
		keycloak, err := keycloak.With(map[string]string{"domain": "sso.test", "realm": "demo"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := keycloak.Metadata(t.Context(), d)
		if err != nil || m.Issuer != issuer || m.For(auth.GrantDeviceCode) != nil {
			t.Errorf("%+v, %v", m, err)
		}
		flow, err := keycloak.Apply(auth.DeviceFlow{Config: oauth2.Config{ClientID: "c", Endpoint: m.Endpoint()}, HTTPClient: m.HTTPClient()})
		if err != nil || flow.Config.Endpoint.TokenURL != issuer+"/token" {
			t.Errorf("%v, %v", flow, err)
		}

		p.asked()
		github, _ := auth.ProfileNamed("github")
		m, err = github.Metadata(t.Context(), d)
		if err != nil || m.For(auth.GrantDeviceCode) != nil || m.RevocationEndpoint != "" || len(p.asked()) != 0 {
			t.Errorf("%+v, %v", m, err)
		}
		aws, _ := auth.ProfileNamed("aws")
		if _, err := aws.Metadata(t.Context(), d); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v", err)
		}
	})
}

// A provider that has another name for the scopes is asked for them all the same, and what it did not grant is told.
func TestProfileScopesNotGranted(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, raw(200, `{"access_token":"at","scope":["a"]}`))
			r.flow.Config.Scopes = []string{"a", "b"}
			twitch, _ := auth.ProfileNamed("twitch")
			flow, err := twitch.Apply(*r.flow)
			if err != nil {
				t.Fatal(err)
			}
			p, err := flow.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if resumed {
				if p, err = flow.Resume(must(p.Save())); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := p.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			granted := remark[auth.Granted](r)
			if len(granted) != 1 || !slices.Equal(granted[0].Scopes, []string{"a"}) || !slices.Equal(granted[0].NotGranted, []string{"b"}) {
				t.Errorf("resumed %v: %+v", resumed, granted)
			}
			if form := r.server.Requests()[0].Form; form.Get("scopes") != "a b" || form.Has("scope") {
				t.Errorf("resumed %v: %v", resumed, form)
			}
		})
	}
}
