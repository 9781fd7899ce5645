import { contractSuite } from '../../contract/suite.ts';
import { testServer } from '../../support/api-server.ts';

contractSuite('embedded', async () => {
  const server = await testServer();
  return { connection: server.connection, close: server.close };
});
