import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../../abi/cqe.ts';
import { MptStatus, mpt } from '../../../../abi/mpt.ts';
import { QpState } from '../../../../abi/qpc.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { NakCode, nakSyndrome, Opcode } from '../../../../wire/index.ts';
import { type BenchOptions, tightest } from '../../testing/data-path-bench.ts';
import {
  allRights,
  FIRST_PSN_A,
  type QpOptions,
  Region,
  type SendRequest,
} from '../../testing/data-path-verbs.ts';
import { type Scene, scene, summaryOf, syndromesOf } from '../../testing/scenario.ts';

const { REMOTE_ACCESS_ERR, REMOTE_INVAL_REQ_ERR, WR_FLUSH_ERR } = CqeSyndrome;

/** A request that side b refuses, and the notifications of each side. */
interface Refusal {
  readonly b?: Partial<QpOptions>;
  readonly request: (scene: Scene) => SendRequest;
  readonly nak: number;
  readonly syndrome: number;
  /** Type of the asynchronous event at side b. */
  readonly event: string;
}

const accessRefused = { nak: NakCode.REMOTE_ACCESS_ERROR, syndrome: REMOTE_ACCESS_ERR, event: '0x11' };
const requestRefused = { nak: NakCode.INVALID_REQUEST, syndrome: REMOTE_INVAL_REQ_ERR, event: '0x10' };

const write = ({ local, target }: Scene, change: Partial<SendRequest['remote']> = {}): SendRequest => ({
  opcode: WqeOpcode.RDMA_WRITE,
  segments: [local.part(0, 3000)],
  remote: { ...target, ...change },
});
const read = (given: Scene, change: Partial<SendRequest['remote']> = {}): SendRequest => ({
  ...write(given, change),
  opcode: WqeOpcode.RDMA_READ,
});
const atomic = ({ local, target }: Scene, change: Partial<SendRequest['remote']> = {}): SendRequest => ({
  opcode: WqeOpcode.ATOMIC_FA,
  segments: [local.part(0, 8)],
  remote: { ...target, ...change },
  swapOrAdd: 1n,
});
/** A region at side b in place of the usual one. */
const other = ({ bench, target }: Scene, options: ConstructorParameters<typeof Region>[2]) => {
  const region = new Region(bench.b, 4096, options);
  return { ...target, address: region.address, key: region.key };
};

const refusals: Record<string, Refusal> = {
  'a WRITE with an rkey of no region': { ...accessRefused, request: (s) => write(s, { key: 0xf_ff00 }) },
  'a WRITE with another variant of the rkey': {
    ...accessRefused,
    request: (s) => write(s, { key: s.target.key + 1 }),
  },
  'a WRITE one byte past the region': {
    ...accessRefused,
    request: (s) => write(s, { address: s.remote.address + s.remote.lengthBytes - 2999 }),
  },
  'a WRITE one byte before the region': {
    ...accessRefused,
    request: (s) => write(s, { address: s.remote.address - 1 }),
  },
  'a WRITE to a region of another protection domain': {
    ...accessRefused,
    request: (s) => write(s, other(s, { pd: 6 })),
  },
  'a WRITE to a region without remote write': {
    ...accessRefused,
    request: (s) => write(s, other(s, { rights: { ...allRights, remoteWrite: false } })),
  },
  'a WRITE to a page that is not present': {
    ...accessRefused,
    request: (s) => write(s, other(s, { holes: [0] })),
  },
  'a WRITE on a QP without remote write': {
    ...requestRefused,
    b: { fields: { remoteWriteEnabled: 0 } },
    request: (s) => write(s),
  },
  'a READ with an rkey of no region': { ...accessRefused, request: (s) => read(s, { key: 0xf_ff00 }) },
  'a READ past the region': {
    ...accessRefused,
    request: (s) => read(s, { address: s.remote.address + s.remote.lengthBytes - 2999 }),
  },
  'a READ of a region without remote read': {
    ...accessRefused,
    request: (s) => read(s, other(s, { rights: { ...allRights, remoteRead: false } })),
  },
  'a READ on a QP without remote read': {
    ...requestRefused,
    b: { fields: { remoteReadEnabled: 0 } },
    request: (s) => read(s),
  },
  'an atomic on a region without remote atomics': {
    ...accessRefused,
    request: (s) => atomic(s, other(s, { rights: { ...allRights, remoteAtomic: false } })),
  },
  'an atomic on a QP without remote atomics': {
    ...requestRefused,
    b: { fields: { remoteAtomicEnabled: 0 } },
    request: (s) => atomic(s),
  },
  'an atomic at an address that is no multiple of 8': {
    ...requestRefused,
    request: (s) => atomic(s, { address: s.remote.address + 4 }),
  },
};

const sizes: [string, BenchOptions][] = [
  ['', {}],
  [', at the smallest sizes', { hca: tightest }],
];

describe('the responder refuses', () => {
  for (const [name, { b, request, nak, syndrome, event }] of Object.entries(refusals))
    for (const [where, options] of sizes)
      it(`IBTA 9.9.3: ${name}${where}`, async () => {
        const given = await scene({ ...options, ...(b === undefined ? {} : { b }) });
        const { bench, a, b: qpB, aCq, bCq, remote, checkBystanders } = given;
        const before = remote.read();
        qpB.receive([remote.part(0, 64)]);
        qpB.receive([remote.part(64, 64)]);
        a.post(request(given));
        a.post(write(given));
        a.post(write(given));
        a.ring();
        await bench.run(60);
        expect(summaryOf(aCq.drain())).toEqual([
          `send 0: 0x${syndrome.toString(16)}`,
          `send 1: 0x${WR_FLUSH_ERR.toString(16)}`,
          `send 2: 0x${WR_FLUSH_ERR.toString(16)}`,
        ]);
        expect(summaryOf(bCq.drain())).toEqual(['receive 0: 0x5', 'receive 1: 0x5']);
        const naks = bench.a.port.packets.filter((packet) => packet.syndrome >= nakSyndrome(0));
        expect(naks.map(({ opcode, psn, syndrome: sent, msn }) => [opcode, psn, sent, msn])).toEqual([
          [Opcode.RC_ACKNOWLEDGE, FIRST_PSN_A, nakSyndrome(nak), 0],
        ]);
        expect(bench.b.events.lines).toEqual([`qp ${event} 0x${qpB.qpn.toString(16)}`]);
        expect(bench.a.events.lines).toEqual([]);
        expect([a.state, qpB.state]).toEqual([QpState.ERR, QpState.ERR]);
        expect(remote.read()).toEqual(before);
        await checkBystanders();
        await bench.until(() => [a, qpB].every((qp) => !qp.node.dataPath.control.qpIsBusy(qp.slot)), 10);
      });

  it('C9-88: nothing of a WRITE of no bytes, whatever its key', async () => {
    const given = await scene();
    const { bench, a, aCq } = given;
    a.send({ opcode: WqeOpcode.RDMA_WRITE, remote: { address: 1, key: 0xf_ff00 } });
    a.send({ opcode: WqeOpcode.RDMA_READ, remote: { address: 1, key: 0xf_ff00 } });
    await bench.run(30);
    expect(syndromesOf(aCq.drain())).toEqual([0, 0]);
  });

  it('IBTA 10.6.7.2: a WRITE to a region that was taken away between two messages', async () => {
    const given = await scene();
    const { bench, a, aCq, remote } = given;
    a.send(write(given));
    await bench.run(20);
    bench.b.rewriteMpt(remote.mptIndex, mpt.encode({ status: MptStatus.SOFTWARE }));
    bench.b.act(() => bench.b.dataPath.control.mptChanged(remote.mptIndex));
    await bench.run(1);
    a.send(write(given));
    await bench.run(30);
    expect(syndromesOf(aCq.drain())).toEqual([0, REMOTE_ACCESS_ERR]);
  });
});
