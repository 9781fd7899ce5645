import type { IncomingMessage, ServerResponse } from 'node:http';
import { EMBEDDED_VERSION_SUFFIX } from '../../../core/embedded.ts';
import { VERSION } from '../../../core/program/version.ts';
import type { Discovery } from '../discovery/discovery.ts';
import type { OpenApi } from '../discovery/openapi.ts';
import { OPENAPI_V2_ASKED, OPENAPI_V2_TYPE } from '../discovery/openapi-v2.ts';
import { failure, methodNotAllowed, unknownPath } from '../errors.ts';
import { sendBytes, sendJson, sendText } from './respond.ts';

export interface Documents {
  discovery: Discovery;
  openapi: OpenApi;
}

const serverVersion = {
  major: '1',
  minor: '35',
  emulationMajor: '1',
  emulationMinor: '35',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '34',
  gitVersion: `v1.35.4${EMBEDDED_VERSION_SUFFIX}`,
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  // Not a field of Kubernetes: the release of Berth whose embedded cluster this is.
  berthVersion: VERSION,
  compiler: 'node',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
};

const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const wantsAggregated = (req: IncomingMessage) =>
  /as=APIGroupDiscoveryList/.test(req.headers.accept ?? '') && /v=v2(;|,|$)/.test(req.headers.accept ?? '');

/** Serves documents other than objects: discovery, version and health. */
export function handleDocument(documents: Documents, req: IncomingMessage, res: ServerResponse, url: URL) {
  if (req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed();
  const { discovery, openapi } = documents;
  const path = url.pathname.replace(/(.)\/+$/, '$1');
  const parts = path.split('/').slice(1);
  switch (parts[0]) {
    case 'healthz':
    case 'livez':
    case 'readyz':
      return sendText(res, 200, 'ok');
    case 'version':
      return sendJson(res, 200, serverVersion);
    case 'api':
      if (parts.length === 2) return found(res, discovery.resourceList('', parts[1] as string));
      if (wantsAggregated(req)) return sendJson(res, 200, discovery.aggregated(true), aggregatedType);
      return sendJson(res, 200, { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] });
    case 'apis':
      if (parts.length === 3) return found(res, discovery.resourceList(parts[1] as string, parts[2] as string));
      if (parts.length === 2) return found(res, discovery.group(parts[1] as string));
      if (wantsAggregated(req)) return sendJson(res, 200, discovery.aggregated(false), aggregatedType);
      return sendJson(res, 200, discovery.groupList());
    case 'openapi':
      return sendOpenApi(openapi, req, res, parts);
    case '':
      return sendJson(res, 200, {
        paths: ['/api', '/apis', '/healthz', '/livez', '/openapi/v2', '/openapi/v3', '/readyz', '/version'],
      });
    default:
      throw unknownPath();
  }
}

function found(res: ServerResponse, document: object | undefined): void {
  if (!document) throw unknownPath();
  sendJson(res, 200, document);
}

function sendOpenApi(openapi: OpenApi, req: IncomingMessage, res: ServerResponse, parts: string[]) {
  if (parts[1] === 'v2' && parts.length === 2) {
    if (!req.headers.accept?.includes(OPENAPI_V2_ASKED)) {
      throw failure(406, 'NotAcceptable', `only ${OPENAPI_V2_ASKED} is served`);
    }
    return sendBytes(res, openapi.v2(), OPENAPI_V2_TYPE);
  }
  if (parts[1] !== 'v3') throw unknownPath();
  if (/protobuf/.test(req.headers.accept ?? '') && !/json|\*\/\*/.test(req.headers.accept ?? '')) {
    throw failure(406, 'NotAcceptable', 'only application/json is served');
  }
  if (parts.length === 2) return sendJson(res, 200, openapi.index());
  return found(res, openapi.document(parts.slice(2).join('/')));
}
