/** A TCP port of this computer's loopback that is free now: for a program that takes its port as an option. */
import { createServer } from 'node:net';
import { ConfigurationError } from '../../base/index.ts';

/** @throws ConfigurationError if the loopback has none */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  if (typeof address === 'object' && address !== null) return address.port;
  throw new ConfigurationError('port', address, 'a port of the loopback');
}
