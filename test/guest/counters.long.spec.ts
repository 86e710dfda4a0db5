/**
 * The counters of adapters and ports as a stock guest reads them in sysfs, by name: after data and errors of every available
 * kind, with some packets lost, damaged and duplicated, each equals the value expected by the test program and the device's
 * report.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GuestSession } from '../../guests/linux/index.ts';
import type { ServeReport } from '../../guests/serve/index.ts';
import type { FaultPlan } from '../../machine/faults/index.ts';
import { pythonTree } from './pyverbs.ts';
import { bootTimeoutMs, optionsFor, reasonAgainst } from './suite.ts';

/** Packets sent by counters.py. */
const faults: FaultPlan = [
  { packet: 'lost', opcode: 'RC_RDMA_WRITE_MIDDLE', nth: 7 },
  { packet: 'corrupted', opcode: 'RC_RDMA_WRITE_MIDDLE', nth: 13, where: 'payload', crc: 'icrc' },
  { packet: 'corrupted', opcode: 'RC_RDMA_WRITE_MIDDLE', nth: 19 },
  { packet: 'lost', opcode: 'RC_SEND_ONLY_WITH_IMMEDIATE', nth: 1 },
  { packet: 'duplicated', opcode: 'RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE', nth: 1 },
];

/** Files of ports/1/counters (drivers/infiniband/core/sysfs.c); those that count nothing here are 0 by docs/how-to/guest.md. */
const counted = [
  'port_rcv_data',
  'port_rcv_errors',
  'port_rcv_packets',
  'port_xmit_data',
  'port_xmit_packets',
];
const zero = [
  ...['VL15_dropped', 'excessive_buffer_overrun_errors', 'link_downed', 'link_error_recovery'],
  ...['local_link_integrity_errors', 'port_rcv_constraint_errors', 'port_rcv_remote_physical_errors'],
  ...['port_rcv_switch_relay_errors', 'port_xmit_constraint_errors', 'port_xmit_discards', 'port_xmit_wait'],
  'symbol_error',
];

/** Files of hw_counters (drivers/infiniband/hw/mlx4/main.c: diag_basic and diag_ext, of the device and of the port; diag_device_only). */
const ofBoth = [
  ...['rq_num_lle', 'rq_num_lpe', 'rq_num_lqpoe', 'rq_num_oos', 'rq_num_rae', 'rq_num_rire', 'rq_num_rnr'],
  ...['rq_num_wrfe', 'sq_num_bre', 'sq_num_lle', 'sq_num_lpe', 'sq_num_lqpoe', 'sq_num_mwbe', 'sq_num_oos'],
  ...['sq_num_rae', 'sq_num_rire', 'sq_num_rnr', 'sq_num_roe', 'sq_num_rree', 'sq_num_tree', 'sq_num_wrfe'],
  ...['rq_num_dup', 'sq_num_to'],
];
const diagnostics = [...ofBoth, 'num_cqovf', 'rq_num_udsdprd'];

type Counts = Readonly<Record<string, number>>;
const devices = [0, 1] as const;

/** The listing leaves out the file that tells how long the kernel caches values, which is less than the wait here. */
const listing =
  'sleep 0.1; cd /sys/class/infiniband; for d in mlx4_0 mlx4_1; do for f in $d/hw_counters/* $d/ports/1/hw_counters/* $d/ports/1/counters/*; do echo $f $(cat $f); done; done';

function countsIn(output: string, folder: string): Counts {
  const lines = output
    .trim()
    .split('\n')
    .map((line) => line.trim().split(' ') as [string, string]);
  return Object.fromEntries(
    lines
      .filter(([path]) => path.startsWith(folder) && !path.endsWith('lifespan'))
      .map(([path, value]) => [path.slice(folder.length), Number(value)]),
  );
}

const reason = await reasonAgainst('debian');

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('counters in sysfs', () => {
  let session: GuestSession;
  /** By device: as the guest read them before and after, as the program expects them, and the report of both. */
  let before: string;
  let after: string;
  let expected: readonly Counts[];
  let report: ServeReport;

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const { copies } = await pythonTree();
    const program = fileURLToPath(new URL('counters.py', import.meta.url));
    session = await GuestSession.start({
      ...optionsFor('debian'),
      ...{ hcas: 2, guests: 1, cable: true },
      serve: { faults },
      ownFiles: { copies: [...copies, program], modules: [] },
    });
    await session.load();
    const check = async (command: string): Promise<string> => {
      const { output, exitStatus } = await session.run(0, command, { timeoutSeconds: 200 });
      expect(exitStatus, output).toBe(0);
      return output;
    };
    before = await check(listing);
    const said = await check('python3 /root/counters.py mlx4_0 mlx4_1');
    expected = JSON.parse(said.trim().split('\n').at(-1)!) as Counts[];
    after = await check(listing);
    report = await session.machine.report();
  }, bootTimeoutMs);
  afterAll(() => session?.[Symbol.asyncDispose]());

  it.each(devices)('are those that Linux has for this card: mlx4_%i', (device) => {
    expect(Object.keys(countsIn(after, `mlx4_${device}/hw_counters/`)).toSorted()).toEqual(
      diagnostics.toSorted(),
    );
    const all = countsIn(after, `mlx4_${device}/hw_counters/`);
    const shared = Object.fromEntries(ofBoth.map((name) => [name, all[name]]));
    expect(countsIn(after, `mlx4_${device}/ports/1/hw_counters/`)).toEqual(shared);
    const ofPort = Object.keys(countsIn(after, `mlx4_${device}/ports/1/counters/`));
    expect(ofPort.toSorted()).toEqual([...counted, ...zero].toSorted());
    expect(Object.values(countsIn(before, `mlx4_${device}/`)).every((value) => value === 0)).toBe(true);
  });

  it.each(devices)('sheet 3.19: count each error by its name, and no other: mlx4_%i', (device) => {
    const {
      rq_num_rnr: sent,
      sq_num_rnr: received,
      ...others
    } = countsIn(after, `mlx4_${device}/hw_counters/`);
    const wanted = Object.fromEntries(
      Object.keys(others).map((name) => [name, expected[device]![name] ?? 0]),
    );
    expect(others).toEqual(wanted);
    const [few, many] = device === 0 ? [sent, received] : [received, sent];
    expect(few).toBe(0);
    // Retransmissions of one request at the guest's pace, and of two until retries were used up.
    expect(many).toBeGreaterThan(3);
  });

  it('equal the transport counters of the report', () => {
    const [near, far] = devices.map((device) => countsIn(after, `mlx4_${device}/hw_counters/`));
    const [requester, responder] = report.nodes.map(({ hca }) => hca.transport);
    expect(requester).toEqual({
      rnrNakReceived: near!['sq_num_rnr'],
      sequenceNakReceived: near!['sq_num_oos'],
      errorNakReceived: near!['sq_num_rire']! + near!['sq_num_rae']! + near!['sq_num_roe']!,
      ackTimeout: near!['sq_num_to'],
    });
    const { requestOutOfSequence: _behindTheGap, ...others } = responder!;
    expect(others).toEqual({
      rnrNakSent: far!['rq_num_rnr'],
      sequenceNakSent: far!['rq_num_oos'],
      // A receive that cannot be written has no NAK counter: rq_num_lpe counts its completion.
      errorNakSent: far!['rq_num_rire']! + far!['rq_num_rae']! + far!['rq_num_lpe']!,
      duplicateRequest: far!['rq_num_dup'],
      unreliableNoReceive: far!['rq_num_udsdprd'],
    });
    const failed = Object.values(report.operations).reduce((sum, row) => sum + row.failed, 0);
    const errors = Object.entries(near!).filter(([name]) => /^sq_num_(?!oos|rnr|to)/.test(name));
    expect(failed).toBe(errors.reduce((sum, [, count]) => sum + count, 0));
  });

  it('IBTA 16.1.3.5: equal the cable counters of the report, and count damaged packets at the receiving port', () => {
    const [near, far] = devices.map((device) => countsIn(after, `mlx4_${device}/ports/1/counters/`));
    const [there, back] = report.wire;
    // Dwords from LRH to ICRC: without the two bytes of the VCRC.
    const dwords = ({ bytes, packets }: { bytes: number; packets: number }): number =>
      (bytes - 2 * packets) / 4;
    const zeros = Object.fromEntries(zero.map((name) => [name, 0]));
    expect([there!.lost, there!.duplicated, there!.corrupted]).toEqual([2, 1, 2]);
    expect(near).toEqual({
      ...zeros,
      port_xmit_packets: there!.packets,
      port_xmit_data: dwords(there!),
      port_rcv_packets: back!.packets,
      port_rcv_data: dwords(back!),
      port_rcv_errors: 0,
    });
    /** WRITE_MIDDLE: LRH 8, BTH 12, 2048 bytes, ICRC 4. SEND_ONLY with immediate, WRITE_ONLY with immediate of 100 bytes: 8, 12, 4, (16,) 100, 4. */
    const [middle, send, write] = [2072, 128, 144];
    expect(far).toEqual({
      ...zeros,
      port_rcv_packets: there!.packets - 2 + 1,
      port_rcv_data: dwords(there!) + (write - middle - send) / 4,
      port_xmit_packets: back!.packets,
      port_xmit_data: dwords(back!),
      port_rcv_errors: there!.corrupted,
    });
  });
});
