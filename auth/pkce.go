package auth

import (
	"net/url"

	"golang.org/x/oauth2"
)

// withProofKey adds a proof key (RFC 7636) to the parameters of both requests: the device request carries the S256
// challenge of a fresh verifier, and the polls carry the verifier.
func withProofKey(device, token url.Values) {
	verifier := oauth2.GenerateVerifier()                                    // section 4.1
	device.Set("code_challenge", oauth2.S256ChallengeFromVerifier(verifier)) // section 4.3
	device.Set("code_challenge_method", "S256")
	token.Set("code_verifier", verifier) // section 4.5
}
