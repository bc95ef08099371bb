package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/heed-sdk/heed/auth"
)

// sealingKey is what an entry of the keyring holds: a random key, and an id that says which one sealed a file.
type sealingKey struct {
	id     string
	secret [32]byte
}

// Format shows no secret.
func (k sealingKey) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "sealing key %s", k.id) }

func newSealingKey() sealingKey {
	k := sealingKey{id: strings.ToLower(rand.Text()[:13])}
	_, _ = rand.Read(k.secret[:]) // never fails
	return k
}

const entryPrefix = "heed1"

// entry is the key as the keyring keeps it: printable, and 62 bytes long.
func (k sealingKey) entry() string {
	return strings.Join([]string{entryPrefix, k.id, base64.RawURLEncoding.EncodeToString(k.secret[:])}, ".")
}

func parseEntry(entry string) (k sealingKey, ok bool) {
	parts := strings.Split(entry, ".")
	if len(parts) != 3 || parts[0] != entryPrefix || parts[1] == "" {
		return k, false
	}
	secret, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(secret) != len(k.secret) {
		return k, false
	}
	k.id = parts[1]
	copy(k.secret[:], secret)
	return k, true
}

// sealedForm is the content of a sealed file, version 1.
type sealedForm struct {
	Version int    `json:"v"`
	KeyID   string `json:"key_id"`
	Sealed  []byte `json:"sealed"` // the nonce, the ciphertext and the tag of AES-256-GCM
}

const sealedVersion = 1

var (
	errOtherKey = errors.New("the key that sealed it is not in the keyring any more")
	errTampered = fmt.Errorf("%w: it was sealed for another login, or was changed", auth.ErrMalformedCredential)
)

// seal seals a login for one key of the keyring and one login's name.
func seal(k sealingKey, login auth.Key, plain []byte) ([]byte, error) {
	aead, err := newAEAD(k)
	if err != nil {
		return nil, err
	}
	f := sealedForm{Version: sealedVersion, KeyID: k.id}
	f.Sealed = aead.Seal(nil, nil, plain, associated(k, login))
	data, err := json.Marshal(f)
	return append(data, '\n'), err
}

// open opens what seal sealed.
func open(k sealingKey, login auth.Key, f sealedForm) ([]byte, error) {
	if f.KeyID != k.id {
		return nil, errOtherKey
	}
	aead, err := newAEAD(k)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, f.Sealed, associated(k, login))
	if err != nil {
		return nil, errTampered
	}
	return plain, nil
}

func parseSealed(data []byte) (sealedForm, error) {
	var f sealedForm
	if json.Unmarshal(data, &f) != nil || f.Version < 1 {
		return f, auth.ErrMalformedCredential
	}
	if f.Version > sealedVersion {
		return f, &auth.VersionError{Version: f.Version}
	}
	return f, nil
}

// newAEAD draws a random nonce for each message, which is safe for far more of them than a login is saved times.
func newAEAD(k sealingKey) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.secret[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// associated is authenticated with the login: a file that is moved to another name does not open.
func associated(k sealingKey, login auth.Key) []byte {
	b, err := json.Marshal([]string{"heed sealed login 1", k.id, login.Issuer, login.ClientID, login.Account})
	if err != nil {
		panic(err) // strings can always be written
	}
	return b
}
