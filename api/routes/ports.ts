import * as z from 'zod';
import { onAbort } from '../../core/abort.ts';
import { PortConnections } from '../../core/enter/ports.ts';
import { enter } from '../inside/enter.ts';
import { carry } from '../inside/ports.ts';
import { insideQuery, portText, sessionParams } from '../openapi/schemas.ts';
import { type Route, route } from '../route.ts';

const params = sessionParams.extend({
  port: portText.transform(Number).pipe(z.int().max(65_535)).describe('TCP port of localhost in the session’s pod.'),
});

export const portRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/v1/namespaces/{namespace}/sessions/{session}/ports/{port}/tcp',
    operationId: 'connectPort',
    summary: 'A TCP connection to a port of a session, as a WebSocket',
    description:
      'Binary messages are bytes of the connection, however they are cut. An empty text message, from either side, says that this side sends nothing more. The socket is closed with 1000 once both have; one that the client closes before resets the connection. 1011: the connection failed; 1012: the server stops; 1008: the right was withdrawn.',
    rights: [{ verb: 'create', resource: 'sessions', subresource: 'ports', nameParam: 'session' }],
    params,
    query: insideQuery,
    codes: ['PortRefused', 'PortFailed'],
    responses: { 101: { description: 'The WebSocket; the port has answered.' } },
    isSocket: true,
    holds: () => 'ports',
    async handle(call, services) {
      const { port, session } = call.params;
      const { frames, trace } = await enter(call, services, { want: 'ports' }, { about: { port } });
      const ports = new PortConnections(frames, session);
      const connection = ports.connect(port);
      // The error also reaches whoever reads or writes.
      connection.on('error', () => {});
      const forget = onAbort(call.signal, () => trace.end(call.signal.reason));
      const end = (error?: unknown) => {
        forget();
        ports.close();
        trace.end(error);
      };
      try {
        await connection.connected;
      } catch (error) {
        end(error);
        throw error;
      }
      return {
        status: 101,
        async serve(socket) {
          try {
            await carry(socket, connection, trace);
            end();
          } catch (error) {
            end(error);
            throw error;
          }
        },
      };
    },
  }),
];
