// npm oidc-provider as a device-flow authorization server on loopback, for Heed's tests.
//
// Environment (times in seconds; 0 is as good as unset):
//   PORT          port on 127.0.0.1 (a free one)
//   DEVICE_TTL    life of a device code (600)
//   ACCESS_TTL    life of an access token (3600)
//   POLL_MIN      answer slow_down to a pending poll sooner than this after the last (never)
//   ADD_INTERVAL  put this `interval` in the device answer (left out, as the library does)
//   EXIT_ON_EOF   1: exit when stdin closes, so that no server outlives a test that died
//
// Prints `ready <issuer>` once it accepts connections.
import crypto from 'node:crypto';
import http from 'node:http';
import Provider, { errors } from 'oidc-provider';

const seconds = (name, fallback) => {
  const value = Number(process.env[name] || 0);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${name}: not a number of seconds`);
  return value || fallback;
};
const pollMin = seconds('POLL_MIN', 0);
const interval = seconds('ADD_INTERVAL', 0);
const accessTTL = seconds('ACCESS_TTL', 3600);

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const device = { grant_types: [DEVICE_GRANT, 'refresh_token'], response_types: [], redirect_uris: [] };
const clients = [
  { ...device, client_id: 'cli', token_endpoint_auth_method: 'none', application_type: 'native' },
  { ...device, client_id: 'cli-secret', client_secret: 's3cret', token_endpoint_auth_method: 'client_secret_basic' },
  { client_id: 'rs', client_secret: 'rs-secret', grant_types: [], response_types: [], redirect_uris: [] },
];

const { privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });

const configuration = {
  clients,
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  cookies: { keys: [crypto.randomBytes(16).toString('hex')] },
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'ES256' }] },
  scopes: ['openid', 'offline_access', 'read', 'write'],
  findAccount: (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  // By default only public clients rotate; a refresh token that is spent once is the harder case for a client.
  rotateRefreshToken: true,
  ttl: {
    DeviceCode: seconds('DEVICE_TTL', 600),
    AccessToken: accessTTL,
    RefreshToken: 86400,
    IdToken: 3600,
    Interaction: 3600,
    Session: 86400,
    Grant: 86400,
  },
  features: {
    devInteractions: { enabled: true }, // any login with any password, then a consent page
    deviceFlow: { enabled: true },
    revocation: { enabled: true, allowedPolicy: async () => true },
    introspection: { enabled: true, allowedPolicy: async () => true },
    // Asking for this resource gives a JWT access token, and a scope narrower than the one asked for.
    resourceIndicators: {
      enabled: true,
      defaultResource: async () => undefined,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (ctx, resource) => {
        if (resource !== 'urn:example:api') throw new errors.InvalidTarget();
        return {
          scope: 'read write',
          audience: resource,
          accessTokenTTL: accessTTL,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        };
      },
    },
  },
};

// The library never sends slow_down and leaves `interval` out; both are put in here, in its own words.
function paced() {
  const lastPoll = new Map();
  return async (ctx, next) => {
    await next();
    if (interval && ctx.path === '/device/auth' && ctx.status === 200) {
      ctx.body = { ...ctx.body, interval };
    }
    if (pollMin && ctx.path === '/token' && ctx.body?.error === 'authorization_pending') {
      const code = ctx.oidc.params.device_code;
      const now = performance.now();
      const last = lastPoll.get(code);
      lastPoll.set(code, now);
      if (last !== undefined && now - last < pollMin * 1000) {
        const { error, error_description } = new errors.SlowDown();
        ctx.body = { error, error_description };
      }
    }
  };
}

// The issuer holds the port, so the port is taken before the provider is made.
const server = http.createServer();
server.listen(Number(process.env.PORT || 0), '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration);
  provider.use(paced());
  provider.on('server_error', (ctx, err) => console.error(err));
  server.on('request', provider.callback());
  console.log(`ready ${issuer}`);
});

if (process.env.EXIT_ON_EOF === '1') {
  process.stdin.on('end', () => process.exit(0)).resume();
}
