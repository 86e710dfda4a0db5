/** Reliable datagram sockets of two stock guests (rds_rdma): messages of up to 64 KiB over connections that the kernels make by rdma_cm. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GuestSession } from '../../guests/linux/index.ts';
import { pythonTree } from './pyverbs.ts';
import { bootTimeoutMs, optionsFor, reasonAgainst } from './suite.ts';

const reason = await reasonAgainst('debian');
const address = (guest: number): string => `10.1.0.${guest + 1}`;

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('sockets of RDS', () => {
  let session: GuestSession;

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const { copies } = await pythonTree();
    const program = fileURLToPath(new URL('rds.py', import.meta.url));
    session = await GuestSession.start({
      ...optionsFor('debian'),
      ...{ hcas: 2, guests: 2, cable: true },
      ownFiles: { copies: [...copies, program], modules: [] },
    });
    await session.load();
  }, bootTimeoutMs);
  afterAll(() => session?.[Symbol.asyncDispose]());

  it('carry messages of 1 byte to 64 KiB between two guests', { timeout: 200_000 }, async () => {
    const run = async (guest: number, command: string): Promise<string> => {
      const { output, exitStatus } = await session.run(guest, command, { timeoutSeconds: 60 });
      expect(exitStatus, output).toBe(0);
      return output;
    };
    for (const guest of [0, 1])
      await run(
        guest,
        `modprobe ib_ipoib && ip addr add ${address(guest)}/24 dev ib0 && ip link set ib0 up && modprobe rds_rdma && ` +
          'for t in $(seq 150); do [ "$(cat /sys/class/net/ib0/operstate)" = up ] && exit 0; sleep 0.2; done; exit 1',
      );
    await run(1, `(python3 /root/rds.py serve ${address(1)} >/run/rds.log 2>&1 &); sleep 2`);
    const output = await run(0, `python3 /root/rds.py send ${address(0)} ${address(1)}`);
    expect(output.trim().split('\n')).toEqual(['1 True', '100 True', '5000 True', '65536 True']);
  });
});
