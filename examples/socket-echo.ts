/**
 * A server and a client by the sockets of a simulated kernel, over conventional NICs. The client on host 0 connects to
 * 10.0.0.2, sends a message and receives it back.
 *
 *     node examples/socket-echo.ts
 *
 * The server alone, for stock programs of a Linux guest at the other end of an Ethernet cable, and one of them:
 *
 *     npx hca guest --peer examples/socket-echo.ts --set machine.adapter=nic --set hca.capability.linkLayer=ethernet \
 *       --run 'ping -c 3 peer' --run 'echo hello | nc peer 7'
 */
import { Machine, type ProgramContext, type Report } from '../index.ts';

const port = 7;
const serverAddress = 0x0a00_0002;
const bufferBytes = 65_536;

/**
 * Returns received bytes over one connection until the client has ended it.
 * @returns their number
 */
export default async function server(context: ProgramContext): Promise<number> {
  const { cpu, memory, exchange } = context;
  const sockets = context.sockets!;
  const listening = await sockets.socket(cpu, 'AF_INET6');
  // Any address, including IPv4.
  await sockets.bind(cpu, listening, { address: '::', port });
  await sockets.listen(cpu, listening, 8);
  await exchange.put('listening', true);

  const connection = await sockets.accept(cpu, listening);
  const buffer = memory.map(bufferBytes);
  for (let total = 0; ; ) {
    const count = await sockets.recv(cpu, connection, buffer, bufferBytes);
    if (count === 0) {
      await sockets.close(cpu, connection);
      await sockets.close(cpu, listening);
      return total;
    }
    await sockets.send(cpu, connection, buffer, count);
    total += count;
  }
}

export async function client(context: ProgramContext): Promise<string> {
  const { cpu, memory, exchange } = context;
  const sockets = context.sockets!;
  await exchange.take('listening');
  const connection = await sockets.socket(cpu);
  await sockets.connect(cpu, connection, { address: serverAddress, port });

  const message = new TextEncoder().encode('echo over a socket');
  const buffer = memory.map(bufferBytes);
  memory.write(buffer, message);
  await sockets.send(cpu, connection, buffer, message.length);
  await sockets.shutdown(cpu, connection, 'SHUT_WR');
  const count = await sockets.recv(cpu, connection, buffer, message.length, { waitAll: true });
  await sockets.close(cpu, connection);
  return new TextDecoder().decode(memory.read(buffer, count));
}

export async function main(): Promise<{ results: unknown; report: Report }> {
  await using machine = await Machine.create({ set: { 'machine.adapter': 'nic' } });
  await machine.load({ node: 0, run: client });
  await machine.load({ node: 1, run: server });
  await machine.run();
  return { results: await machine.results(), report: await machine.report() };
}

if (import.meta.main) console.log((await main()).results);
