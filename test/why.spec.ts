/** Explains completions with errors, and hanging runs, by the check that refused and the line that posted. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  createBuffer,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  pollCq,
  postSend,
} from '../browser.ts';
import { type WhyResult, whyOf } from '../cli/why/why.ts';
import { loadPrograms } from '../experiments/runs/perf-run.ts';
import {
  allAccess,
  connectQps,
  pathMtuOf,
  rcDefaults,
  toInit,
  toRtr,
  toRts,
} from '../experiments/workloads/index.ts';
import type { PerfArgs } from '../experiments/workloads/perf-plan.ts';
import { parsedFault } from '../machine/faults/index.ts';
import { createCq } from '../userlib/index.ts';
import { bystanders, programOf } from './machines.ts';
import { cases as protectionCases } from './programs/protection.ts';

const cases = Object.keys(protectionCases);
let protection: WhyResult;
beforeAll(async () => {
  protection = await whyOf({}, async (machine) => {
    // The requester waits for the bystander's progress.
    const programs = ['requester', 'responder'].map((name, node) => programOf('protection', name, node));
    for (const program of [...programs, ...bystanders()]) await machine.load(program);
  });
});

/** Texts of the first reasons of a case, by words of its name; and the found reasons for comparison. */
const reported: readonly (readonly [RegExp, RegExp])[] = [
  [/shorter than/, /ended with LOC_LEN_ERR/],
  [/QP without the right/, /does not accept this operation.*asked for: .*given: /],
  [/unaligned/, /no multiple of 8.*found 0x|no multiple of 8.*0x/],
  [/(wrong lkey|wrong rkey)/, /no memory region has the key 0x\w+.*0x\w+/],
  [/of nothing/, /no memory region has the key 0x\w+.*a valid MPT entry/],
  [/past the region|before the region/, /reaches out of the region.*\[0x\w+, 0x\w+\).*\[0x\w+, 0x\w+\)/],
  [/another PD/, /another protection domain.*PD 0x\w+ of the QP.*PD 0x\w+ of the region/],
  [/without the right|without local write/, /does not give the right.*asked for: .*given: /],
];

const textOf = ({ reasons }: WhyResult['failures'][number]): string =>
  reasons.map(({ text, found = '', heldTo = '' }) => `${text} ${found} ${heldTo}`).join(' ');

describe('the reason of a failed request', () => {
  it('is found for every case of protection, with the found and the required value', () => {
    const sends = protection.failures.filter(
      ({ node, queue, status }) => node === 0 && queue === 'send' && status !== 'WR_FLUSH_ERR',
    );
    expect(sends.length).toBe(cases.length);
    expect(new Set(sends.map(({ status }) => status))).toEqual(
      new Set(['LOC_PROT_ERR', 'REM_ACCESS_ERR', 'REM_INV_REQ_ERR', 'REM_OP_ERR']),
    );
    cases.forEach((name, index) => {
      const [, pattern] = reported.find(([words]) => words.test(name))!;
      expect(textOf(sends[index]!), name).toMatch(pattern);
    });
  });

  it('leads to the line that posted it', () => {
    for (const { queue, postedAt } of protection.failures)
      if (queue === 'send') expect(postedAt).toMatch(/test\/programs\/\w+\.ts:\d+$/);
  });

  it('names the cause of a flushed request’s flush', () => {
    const flushed = protection.failures.filter(({ status }) => status === 'WR_FLUSH_ERR');
    expect(flushed.length).toBeGreaterThan(cases.length);
    for (const { reasons } of flushed) expect(reasons[0]!.text).toContain('went to the error state when');
  });

  it('is not taken from another QP, whose request was refused between the check and the completion', async () => {
    const open = async (program: ProgramContext) => {
      const endpoint = await openEndpoint(program);
      const buffer = await createBuffer(endpoint, 64, allAccess);
      const cq = await createCq(endpoint.context, 16);
      const cap = { maxSendWr: 8, maxRecvWr: 8, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 };
      const qps = await createRcQps(endpoint, 2, { send: cq, receive: cq }, cap);
      const own = { address: buffer.address, rkey: buffer.region.rkey };
      const attributes = { ...rcDefaults, pathMtu: pathMtuOf(endpoint, 0) };
      const { note } = await connectQps<typeof own>(endpoint, qps, 'pairs', own, {
        init: (qp) => toInit(qp),
        beforeReady: () => {},
        ready: async (qp, address, firstPsn) => {
          await toRtr(qp, address, attributes);
          await toRts(qp, firstPsn, attributes);
        },
      });
      return { buffer, cq, qps, far: note };
    };
    let key = 0;
    const requester = async (program: ProgramContext): Promise<void> => {
      const { buffer, cq, qps, far } = await open(program);
      key = buffer.region.lkey;
      const write = (qp: number, lkey: number): void => {
        postSend(qps[qp]!, {
          ...{ wrId: 0, numSge: 1, opcode: IBV_WR_RDMA_WRITE, sendFlags: IBV_SEND_SIGNALED },
          sgList: [{ addr: buffer.address, length: 64, lkey }],
          wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } },
        });
      };
      // The second request of a QP is refused at once, and ends after the first, which needs a round trip.
      write(0, key);
      write(0, key ^ 1);
      await program.cpu.sleep(300_000);
      write(1, key ^ 2);
      const taken = [new IbvWc()];
      for (let count = 0; count < 3; await program.cpu.sleep(1_000_000)) count += await pollCq(cq, 1, taken);
      await program.exchange.put('done', true);
    };
    const { failures } = await whyOf({}, async (machine) => {
      await machine.load({ node: 0, name: 'requester', run: requester });
      await machine.load({
        node: 1,
        name: 'responder',
        run: async (program) => {
          await open(program);
          await program.exchange.take('done');
        },
      });
    });
    const keyOf = (ordinal: number): string =>
      failures.find((failure) => failure.ordinal === ordinal)!.reasons[0]!.found!;
    expect([keyOf(1), keyOf(2)]).toEqual([`0x${(key ^ 1).toString(16)}`, `0x${(key ^ 2).toString(16)}`]);
  });

  it.each([
    ['', 'REM_ACCESS_ERR', /refused XRC_RDMA_READ_REQUEST, PSN \d+: remote access error/, ''],
    [
      'no queue',
      'REM_INV_REQ_ERR',
      /refused XRC_RDMA_READ_REQUEST, .*names no shared receive/,
      'no such queue',
    ],
  ])('annex A14: is found for XRC requests, as such%s', async (args, expected, text, found) => {
    const { failures } = await whyOf({}, async (machine) => {
      await machine.load(programOf('extended', 'sender', 0, { args }));
      await machine.load(programOf('extended', 'owner', 1));
      await machine.load(programOf('extended', 'guest', 1));
    });
    const [failure] = failures.filter(({ node }) => node === 0);
    expect(failure!.status).toBe(expected);
    expect(failure!.reasons[0]!.text).toMatch(text);
    expect(failure!.reasons[0]!.found ?? '').toBe(found);
    expect(failure!.reasons.length).toBe(args === '' ? 2 : 1);
  });

  it('is found for receives: too short, and into memory without a right', () => {
    const receives = protection.failures.filter(
      ({ queue, status }) => queue === 'receive' && status !== 'WR_FLUSH_ERR',
    );
    expect(new Set(receives.map(({ status }) => status))).toEqual(new Set(['LOC_LEN_ERR', 'LOC_PROT_ERR']));
    for (const { reasons } of receives) expect(reasons.length).toBeGreaterThan(0);
  });

  const args: PerfArgs = {
    ...{ verb: 'read', isLatency: true, sizeBytes: 64, iterations: 4, qpCount: 1, txDepth: 8, rxDepth: 8 },
    ...{ inlineBytes: 0, usesEvents: false, cqModeration: 1, mtuBytes: 0 },
  };

  it('counts, for exhausted retries, packets that left and packets that never arrived', async () => {
    const faults = [parsedFault('packet=lost,node=0,nth=3-100')];
    const { failures, error } = await whyOf({ faults }, (machine) => loadPrograms(machine, args));
    expect(error).toBeDefined();
    const [first] = failures;
    expect([first!.status, first!.operation]).toEqual(['RETRY_EXC_ERR', 'READ']);
    expect(textOf(first!)).toMatch(
      /no acknowledgement.*packets of this QP left host 0.*[1-9]\d* never arrived/,
    );
  });

  it('counts the packets of the QP that failed, not those of its neighbours', async () => {
    const faults = [parsedFault('packet=lost,node=0,qpn=0x209,nth=3-2000')];
    const four: PerfArgs = {
      ...args,
      verb: 'write',
      isLatency: false,
      iterations: 20,
      qpCount: 4,
      txDepth: 32,
    };
    const { failures } = await whyOf({ faults }, (machine) => loadPrograms(machine, four));
    const [first] = failures;
    expect([first!.status, first!.qpn, first!.wqeCounter]).toEqual(['RETRY_EXC_ERR', 0x209, 2]);
    // Two that arrive, posted before it and still in flight afterwards, and 18 as often as retryCnt of rcDefaults, 7, after the
    // first.
    expect(first!.reasons[1]!.text).toBe(
      '146 packets of this QP left host 0 since the post, 126 of them again, 144 never arrived, 0 arrived corrupted',
    );
  });

  it('of a hang is the packet that never arrived, and the fault that lost it', async () => {
    const faults = [parsedFault('packet=lost,node=0,nth=4')];
    const unreliable: PerfArgs = { ...args, verb: 'send', connection: 'UC' };
    const { losses, error, ...found } = await whyOf({ faults }, (machine) =>
      loadPrograms(machine, unreliable),
    );
    expect(error).toContain('nothing is left to do, but programs have not ended');
    expect(losses.count).toBe(1);
    expect(losses.first[0]!.text).toMatch(/^UC_SEND_ONLY to QP 0x\w+, PSN \d+, 64 bytes, never arrived$/);
    expect(found.faults[0]!.fired).toBe(1);
  });

  describe('on an Ethernet cable', () => {
    const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' } as const;

    it('counts retransmissions, and packets that never arrived', async () => {
      // After ARP and the connection set-up: only requests, of which the third is lost every time it is sent.
      const faults = [parsedFault('packet=lost,node=0,only=requests,nth=3-100')];
      const { failures, losses, error } = await whyOf({ faults, set }, (machine) =>
        loadPrograms(machine, args),
      );
      expect(error).toBeDefined();
      const [first] = failures;
      expect([first!.status, first!.operation, first!.ordinal]).toEqual(['RETRY_EXC_ERR', 'READ', 2]);
      // The retransmissions after the first are retryCnt of rcDefaults: 7.
      const counts =
        '8 packets of this QP left host 0 since the post, 7 of them again, 8 never arrived, 0 arrived corrupted';
      expect(first!.reasons[1]!.text).toBe(counts);
      expect(losses.count).toBe(8);
    });

    it('names the lost ARP frame, and posts by the lines of the programs', async () => {
      const faults = [parsedFault('packet=lost,node=0,nth=1')];
      const { failures, losses, unfinished, error } = await whyOf({ faults, set }, (machine) =>
        loadPrograms(machine, args),
      );
      expect([failures, unfinished, error]).toEqual([[], [], undefined]);
      expect(losses.first.map(({ text }) => text)).toEqual(['ARP request, 60 bytes, never arrived']);
    });
  });

  it('is empty when every request ended well', async () => {
    const { failures, unfinished, error } = await whyOf({}, (machine) => loadPrograms(machine, args));
    expect([failures, unfinished, error]).toEqual([[], [], undefined]);
  });
});
