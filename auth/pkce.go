package auth

import (
	"net/url"

	"golang.org/x/oauth2"
)

// WithPKCE returns a copy of the flow for one login with a proof key (RFC 7636): the device request carries the S256
// challenge of a fresh verifier, and the polls carry the verifier, so that a device code is of no use to whoever
// intercepts it. RFC 8628 does not ask for it; some servers enforce it, and those that do not know it ignore it.
//
// A verifier is good for one login. Call WithPKCE again for the next.
func (f DeviceFlow) WithPKCE() *DeviceFlow {
	verifier := oauth2.GenerateVerifier() // section 4.1
	f.Params, f.TokenParams = withProofKey(f.Params, f.TokenParams, verifier)
	return &f
}

// withProofKey returns the parameters of both requests with those of a proof key.
func withProofKey(device, token url.Values, verifier string) (url.Values, url.Values) {
	device, token = clone(device), clone(token)
	device.Set("code_challenge", oauth2.S256ChallengeFromVerifier(verifier)) // section 4.3
	device.Set("code_challenge_method", "S256")
	token.Set("code_verifier", verifier) // section 4.5
	return device, token
}
