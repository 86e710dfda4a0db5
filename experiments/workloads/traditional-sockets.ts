/** Kernel sockets over the conventional NIC, as a side of a comparison: one stream connection, one call per message. */
import { InvariantError } from '../../base/index.ts';
import { addressOf, type ProgramContext } from '../../machine/index.ts';
import type { CompareSide } from './compare-plan.ts';
import { barrier } from './rc-endpoint.ts';

const port = 5001;

export async function socketSide(program: ProgramContext): Promise<CompareSide> {
  const { sockets, cpu, node } = program;
  if (sockets === undefined) throw new InvariantError('sockets', 'none', 'machine.adapter=nic');
  const connection = await connected(program);
  return {
    isActive: true,
    prepare: async () => {},
    run: async (messages) => {
      for (const { address, lengthBytes } of messages)
        if (node === 0) await sockets.send(cpu, connection, address, lengthBytes);
        else await sockets.recv(cpu, connection, address, lengthBytes, { waitAll: true });
    },
    close: () => sockets.close(cpu, connection),
  };
}

/** Host 0 connects, its peer listens. Messages are sent immediately, however small (TCP_NODELAY). */
async function connected(program: ProgramContext): Promise<number> {
  const { cpu, node, peers } = program;
  const sockets = program.sockets!;
  const fd = await sockets.socket(cpu);
  await sockets.setsockopt(cpu, fd, 'TCP_NODELAY', 1);
  if (node === 0) {
    await barrier(program, 'listening');
    await sockets.connect(cpu, fd, { address: addressOf(peers[0]!), port });
    return fd;
  }
  await sockets.bind(cpu, fd, { address: 0, port });
  await sockets.listen(cpu, fd, 1);
  await barrier(program, 'listening');
  const accepted = await sockets.accept(cpu, fd);
  await sockets.close(cpu, fd);
  return accepted;
}
