/** Tests beyond the limits of a host: regions larger than its memory, thousands of QPs and keys, fast cables; and the routes of packets. */
import { describe, expect, it, vi } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { ConfigurationError } from '../../base/index.ts';
import runPerf, { loadPrograms } from '../../experiments/runs/perf-run.ts';
import { createBuffer, openEndpoint } from '../../experiments/workloads/index.ts';
import { parsedWorkload, perfArgsOf, type Workload } from '../../experiments/workloads/workload.ts';
import { Machine } from '../../machine/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import { IBV_ACCESS_LOCAL_WRITE, regMr } from '../../userlib/index.ts';
import { hca } from '../testing/in-process.ts';

describe('perf, beyond the memory of a host', () => {
  it('repeats memory under a region of 64 GiB, reports it, and misses like a region of 64 GiB', async () => {
    const words = ['write-bw', '-s', '64', '-q', '4', '-n', '500', '--warmup', '10', '--pattern', 'random'];
    const large = [...words, '--region', '64G', '--page-size', '2M'];
    const said = await hca('perf', ...large);
    expect([said.code, said.err]).toEqual([0, '']);
    expect(said.out).toContain('64.00 MiB repeat under its addresses');
    const far = await hca('perf', ...large, '--json', '-');
    const { rows } = JSON.parse(far.out) as { rows: { args: { region: object }; caches: Caches[] }[] };
    expect(rows[0]!.args.region).toMatchObject({ bytes: 64 * 2 ** 30, stretchBytes: 64 * 2 ** 20 });
    // 32,768 pages of 2 MiB, eight to a line, 2048 lines on chip: once all lines are warm, a WRITE finds its line half
    // of the time. These 2,000 begin cold: none of the 4,096 lines was used often.
    const { hits, misses } = rows[0]!.caches[1]!.mtt;
    expect(misses / (hits + misses)).toBeGreaterThan(0.6);
    const near = await hca('perf', ...words, '--region', '16M', '--page-size', '2M');
    expect(near.out).not.toContain('repeat');
  });

  it('names the missing resource of a region with 4 KiB pages: translations', async () => {
    const { code, err } = await hca('perf', 'write-bw', '-s', '64', '-n', '5', '--region', '64G');
    expect(code).toBe(1);
    expect(err).toContain('33554432 translation entries are needed, and the 1048576 of driver.logMtts');
  });

  it('has more QPs than 1024, and more keys than 4096', async () => {
    const qps = await hca('perf', 'write-bw', '-s', '64', '-q', '1100', '-n', '2', '-t', '2');
    expect([qps.code, qps.err]).toEqual([0, '']);
    const words = ['--region', '8M', '--keys', '4200', '--pattern', 'random'];
    const keys = await hca('perf', 'write-bw', '-s', '64', '-q', '2', '-n', '200', ...words);
    expect([keys.code, keys.err]).toEqual([0, '']);
    expect(keys.out).toContain('MPT misses');
  });

  it('rejects a single message larger than the memory of a host', async () => {
    const { code, err } = await hca('perf', 'write-bw', '-s', '1G', '-n', '1');
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('--size is 1073741824, expected memory for what'),
    ]);
  });
});

interface Caches {
  readonly mtt: { readonly hits: number; readonly misses: number };
}

describe('a program with repeating memory', () => {
  it('finds bytes that a device wrote one stretch later, and registers all of it', async () => {
    await using machine = await Machine.create();
    const stretchBytes = 2 ** 21;
    await machine.load({
      node: 0,
      run: async (program) => {
        const endpoint = await openEndpoint(program);
        const { address } = await createBuffer(endpoint, 64);
        const far = program.memory.map(2 ** 36, { stretchBytes, pageSize: stretchBytes });
        const region = await regMr(endpoint.pd, far, 2 ** 36, IBV_ACCESS_LOCAL_WRITE);
        program.memory.write(far + 2 ** 36 - 4, Uint8Array.of(1, 2, 3, 4));
        const found = program.memory.read(far + stretchBytes - 4, 4);
        return { found: [...found], isRegistered: region.lkey > 0 && address > 0 };
      },
    });
    await machine.run();
    expect(await machine.results()).toMatchObject([{ found: [1, 2, 3, 4], isRegistered: true }]);
  });
});

describe('a cable up to 400 Gb/s', () => {
  /** Link widths of the card and credits of the root port beyond the cable's needs. */
  const wide = [
    ...['hca.receiveBytesPerCycle=256', 'hca.gatherBytesPerCycle=256'],
    ...['pcie.rootPort.postedData=2047', 'pcie.rootPort.postedHeaders=127'],
  ].flatMap((set) => ['--set', set]);

  it.each([
    ['EDR', 100],
    ['HDR', 200],
    ['NDR', 400],
  ])(
    'IBTA vol 2, 5.3: 4X %s carries %d Gb/s, most of it data for packets of 4096 bytes',
    async (speed, gigabits) => {
      const card = ['--profile', 'gen5-x16-what-if', ...wide, '--set', `wire.speed=${speed}`];
      const { out, code } = await hca('perf', 'write-bw', '-n', '60', '-q', '4', ...card);
      expect(code).toBe(0);
      const mebibytes = Number(/^ 65536 +60 +\S+ +(\S+)/m.exec(out)![1]);
      const share = (mebibytes * 2 ** 20 * 8) / 1e9 / gigabits;
      // Headers, CRCs and framing use 28 bytes per packet, 0.7 %; the round trip of 240 messages uses the rest.
      expect(share).toBeGreaterThan(0.94);
      expect(share).toBeLessThan(4096 / (4096 + 28));
    },
  );
});

describe('the route of a test', () => {
  const bytesOf = async (workload: string, set: ParameterValues = {}): Promise<Uint8Array[]> => {
    const analysis = { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 20 } };
    await using machine = await Machine.create({ set, analysis });
    await loadPrograms(machine, perfArgsOf(parsedWorkload(workload)));
    await machine.run();
    const { frames } = readCapture((await machine.capture())!);
    // InfiniBand packets are stored in records with a header of 16 bytes (ERF).
    const header = set['hca.capability.linkLayer'] === 'ethernet' ? 0 : 16;
    return frames.map(({ bytes }) => bytes.subarray(header));
  };

  it.each([
    ['write-bw,size=8,iters=4,trafficClass=0x5c', 'RC'],
    ['send-bw,size=8,iters=4,connection=UD,trafficClass=0x5c', 'UD'],
    ['write-bw,size=8,iters=4,connection=UC,trafficClass=0x5c', 'UC'],
  ])('IBTA 8.3: of %s is in the GRH, which it adds on InfiniBand', async (workload) => {
    const packets = await bytesOf(workload);
    // LRH: LNH in the low two bits of byte 1, 3 with a GRH (IBTA 7.7.5). GRH: version 6, traffic class, flow label 0.
    const routes = packets
      .filter((bytes) => (bytes[1]! & 3) === 3)
      .map((bytes) => [...bytes.subarray(8, 12)]);
    expect(routes.length).toBeGreaterThanOrEqual(4);
    for (const route of routes) expect(route).toEqual([0x65, 0xc0, 0, 0]);
  });

  it('omits the GRH on InfiniBand if nothing requests one', async () => {
    const packets = await bytesOf('write-bw,size=8,iters=4');
    expect(packets.every((bytes) => (bytes[1]! & 3) === 2)).toBe(true);
  });

  it('IBTA A17.4: is the TOS of IPv4 on RoCE v2, and version 1 with a link-local GID if the index selects it', async () => {
    const roce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };
    const typeOf = (bytes: Uint8Array): number => bytes[12]! * 256 + bytes[13]!;
    const ipv4 = (await bytesOf('write-bw,size=8,iters=4,trafficClass=0x5c', roce)).filter(
      (bytes) => typeOf(bytes) === 0x0800,
    );
    expect(ipv4.length).toBeGreaterThanOrEqual(5);
    for (const bytes of ipv4) expect(bytes[15]).toBe(0x5c);
    const version1 = (await bytesOf('write-bw,size=8,iters=4,gidIndex=0', roce)).filter(
      (bytes) => typeOf(bytes) === 0x8915,
    );
    expect(version1.length).toBeGreaterThanOrEqual(5);
  });

  it('IBTA 9.8.3: rejects datagrams longer than a packet of the port, before the run', async () => {
    const roce = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.roce=v2'];
    // The default MTU is 2048; a frame of 1500 bytes holds a path MTU of 1024.
    const { code, err } = await hca('perf', 'send-bw', '-c', 'UD', '-n', '10', ...roce);
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('--size is 2048, expected at most the MTU of the port, 1024'),
    ]);
    const short = await hca('perf', 'send-bw', '-c', 'UD', '-n', '10', '-s', '1024', ...roce);
    expect([short.code, short.err]).toEqual([0, '']);
  });

  it.each([
    // Link-local and IPv4 address, for each version of RoCE (IBTA A17.4); a frame of 1500 bytes holds 1024 with all
    // headers.
    ['InfiniBand', {}, 0, 4096],
    ['RoCE v1', { 'hca.capability.roce': 'v1' }, 1, 1024],
    ['RoCE v2', { 'hca.capability.roce': 'v2' }, 3, 1024],
    ['RoCE v2 in long frames', { 'hca.capability.roce': 'v2', 'ethernet.mtuBytes': 4200 }, 3, 4096],
    ['RoCE v2 in the shortest frames', { 'hca.capability.roce': 'v2', 'ethernet.mtuBytes': 352 }, 3, 256],
  ] as const)(
    'takes every GID index and MTU that the port has, and no other: %s',
    async (name, changes, indexMax, mtuMax) => {
      const set = name === 'InfiniBand' ? {} : { 'hca.capability.linkLayer': 'ethernet', ...changes };
      const mtus = [256, 512, 1024, 2048, 4096] as const;
      const perf = (more: Partial<Workload>) => {
        const args = perfArgsOf({ test: 'write-bw', size: 8, iters: 2, ...more });
        return runPerf({ machine: { set }, args });
      };
      const run = vi.spyOn(Machine.prototype, 'run');
      for (const gidIndex of [indexMax + 1, 127])
        await expect(perf({ gidIndex })).rejects.toThrow(
          new ConfigurationError('gidIndex', gidIndex, `0 to ${indexMax}, the GIDs of the port`),
        );
      for (const mtu of mtus.filter((one) => one > mtuMax))
        await expect(perf({ mtu })).rejects.toThrow(
          new ConfigurationError('mtu', mtu, `at most the port's, ${mtuMax}`),
        );
      expect(run).not.toHaveBeenCalled();
      run.mockRestore();
      const { isBalanced } = await perf({ gidIndex: indexMax, mtu: mtuMax });
      expect(isBalanced).toBe(true);
    },
  );

  it('names the option that does not fit the port, and exits as for any other', async () => {
    const roce = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.roce=v1'];
    for (const [command, option, range] of [
      ['perf', ['-x', '2'], '--gid-index is 2, expected 0 to 1'],
      ['perf', ['-m', '2048'], "--mtu is 2048, expected at most the port's, 1024"],
      ['why', ['-x', '2'], '--gid-index is 2, expected 0 to 1'],
      ['explain', ['-m', '2048'], "--mtu is 2048, expected at most the port's, 1024"],
    ] as const) {
      const { code, err } = await hca(command, 'write-lat', '-n', '4', ...option, ...roce);
      expect([code, err]).toEqual([2, expect.stringContaining(range)]);
    }
  });
});
