import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { Clock } from '../../../sim/index.ts';
import { QpTable } from '../objects/qp-table.ts';
import { ENDED_BY_ANSWER, ENDED_BY_RNR_DELAY, ENDED_BY_TIMEOUT } from '../objects/send-record.ts';
import { SendRecords } from '../objects/send-records.ts';
import { infinibandQpContext } from '../testing/contexts.ts';
import { scene } from '../testing/scenario.ts';
import {
  OperationLedger,
  type OperationTap,
  operationStages,
  rateStages,
  streamStages,
} from './operations.ts';

const QPN = 0x40;
/** Stages of a request without a byte stream. */
const messageStages = operationStages.filter((stage) => !streamStages.has(stage) && !rateStages.has(stage));
/** Opcodes of requests that need no key of their own. */
const movingOpcodes: readonly number[] = [
  WqeOpcode.NOP,
  WqeOpcode.SEND,
  WqeOpcode.SEND_IMM,
  WqeOpcode.RDMA_WRITE,
  WqeOpcode.RDMA_WRITE_IMM,
  WqeOpcode.RDMA_READ,
  WqeOpcode.ATOMIC_CS,
  WqeOpcode.ATOMIC_FA,
];

/** A table whose first slot has this object number. */
function tableWith(objectNumber: number): QpTable {
  const table = new QpTable(1, infinibandQpContext);
  table.allocate(objectNumber);
  return table;
}

function bench(tap?: OperationTap) {
  const ledger = new OperationLedger(new Clock(1000), tableWith(QPN), tap);
  const request = new SendRecords(4).allocate();
  request.qp = 0;
  request.opcode = WqeOpcode.RDMA_WRITE;
  request.messageBytes = 64;
  request.syndrome = 0;
  request.wqeCounter = 7;
  request.fetchBegunCycle = 110;
  request.fetchedCycle = 150;
  request.startedCycle = 155;
  request.gatheredCycle = 190;
  request.transmittedCycle = 220;
  request.acknowledgedCycle = 900;
  const row = ledger.rows[WqeOpcode.RDMA_WRITE]!;
  const stages = (): number[] => messageStages.map((stage) => row.stagesPs[stage]);
  return { ledger, row, request, stages };
}

describe('OperationLedger', () => {
  it('lays the stages of a request end to end, from its posting to its CQE', () => {
    const issued: number[][] = [];
    const { ledger, row, request, stages } = bench({
      postedPs: (qpn, counter) => (qpn === QPN && counter === 7 ? 100_000 : Number.NaN),
      exactPostedPs: () => 100_000n,
      cqeIssued: (...values) => issued.push(values),
    });
    ledger.completed(request, 930, false);
    // doorbell 100→110, WQE fetch →150, scheduling →155, payload read →190, transmit →220, remote →900, completion →930.
    expect(stages()).toEqual([10, 40, 5, 35, 30, 0, 0, 680, 30].map((cycles) => cycles * 1000));
    expect(row.lifePs).toBe(830_000);
    expect([row.count, row.payloadBytes, ledger.disorderCount]).toEqual([1, 64, 0]);
    expect(issued).toEqual([[QPN, 7, 930_000]]);
  });

  it('lays the stages of a READ over a byte stream end to end, also of one that took days', () => {
    const dayCycles = 86_400_000_000_000;
    for (const late of [0, dayCycles]) {
      const { ledger, row, request } = bench();
      request.stream.begin();
      request.stream.blocked(160);
      request.stream.blocked(165);
      request.stream.opened(170);
      const times = { sentCycle: 240, resentCycle: 400 };
      Object.assign(request.stream, { framedCycle: 205, times, handedCycle: late + 850 });
      request.acknowledgedCycle += late;
      ledger.completed(request, late + 930, false);
      // From the start at 155: no room for 10, payload →190, transmit →205, framing →220, TCP →240, sent again at 400, answer →850, placed →900.
      const parts = [0, 40, 5, 0, 10, 25, 15, 15, 20, 160, 0, 0, late + 450, 50, 30];
      const { far } = row;
      expect(
        operationStages.map((stage) => BigInt(row.stagesPs[stage]) + (far?.stagesPs[stage] ?? 0n)),
      ).toEqual(parts.map((cycles) => BigInt(cycles) * 1000n));
    }
  });

  it('books no time to a segment that TCP sends again while its answer is there', () => {
    const { ledger, row, request } = bench();
    request.stream.begin();
    const times = { sentCycle: 240, resentCycle: 880 };
    Object.assign(request.stream, { framedCycle: 205, times, handedCycle: 850 });
    ledger.completed(request, 930, false);
    expect(row.stagesPs).toMatchObject({ retransmission: 0, remote: 610_000, placement: 50_000 });
  });

  it('books the waits for the rate of a QP to a stage of its own, at most to the end of the request', () => {
    const dayCycles = 24 * 3600 * 1e9;
    for (const late of [0, dayCycles]) {
      const { ledger, row, request } = bench();
      request.waitsForRate(160, 180);
      request.acknowledgedCycle += late;
      ledger.completed(request, late + 930, false);
      const { far, stagesPs } = row;
      const sum = (stage: 'scheduling' | 'rateLimit' | 'payloadRead') =>
        BigInt(stagesPs[stage]) + (far?.stagesPs[stage] ?? 0n);
      // Started at 155, gathered at 190.
      expect([sum('scheduling'), sum('rateLimit'), sum('payloadRead')]).toEqual([5000n, 20_000n, 15_000n]);
    }
    const { ledger, row, request } = bench();
    // The answer to an earlier attempt ends it while it waits.
    request.waitsForRate(155, 10_155);
    request.acknowledgedCycle = 640;
    ledger.completed(request, 650, false);
    expect([row.stagesPs.rateLimit, row.stagesPs.remote]).toEqual([495_000, 0]);
    expect(Object.values(row.stagesPs).reduce((total, ps) => total + ps, 0)).toBe(row.lifePs);
  });

  it('books the waits for the rate of a retransmitted request to the attempts that waited', () => {
    const dayCycles = 24 * 3600 * 1e9;
    for (const late of [0, dayCycles]) {
      const { ledger, row, request } = bench();
      // Started at 155, held 160 to 180, gathered at 190, sent at 220, a time-out at 620.
      request.waitsForRate(160, 180);
      request.earlier.add(request, 620, ENDED_BY_TIMEOUT);
      // Held from 630 on, also when served again at 650, until a NAK at 690 ends the attempt.
      request.waitsForRate(630, 700);
      request.waitsForRate(650, 700);
      request.earlier.add(request, 690, ENDED_BY_ANSWER);
      request.waitsForRate(695, 745);
      Object.assign(request, { gatheredCycle: 750, transmittedCycle: 760, acknowledgedCycle: late + 900 });
      ledger.completed(request, late + 930, false);
      const { far, stagesPs } = row;
      const sum = (stage: 'rateLimit' | 'payloadRead' | 'transmit' | 'ackTimeout' | 'remote') =>
        BigInt(stagesPs[stage]) + (far?.stagesPs[stage] ?? 0n);
      expect(sum('rateLimit')).toBe(BigInt((20 + 60 + 50) * 1000));
      // Attempts: 35 - 20 and 750 - 690 - 50 to gather, 30 and 10 to transmit; of the second, 10 are no wait for the rate.
      expect(sum('payloadRead')).toBe(BigInt((15 + 10) * 1000));
      expect(sum('transmit')).toBe(BigInt((30 + 10) * 1000));
      expect(sum('ackTimeout')).toBe(BigInt(400 * 1000));
      expect(sum('remote')).toBe(BigInt(10 + 140 + late) * 1000n);
    }
  });

  it('begins with the fetch when the posting time is unknown', () => {
    const { ledger, row, request, stages } = bench();
    ledger.completed(request, 930, true);
    expect(stages()[0]).toBe(0);
    expect([row.lifePs, row.silentCount]).toEqual([820_000, 1]);
  });

  it.each([
    [220, true],
    [222, false],
  ])(
    'ends the stages of a datagram with its life at %i, while its last bytes are still being read',
    (end, isSilent) => {
      const { ledger, row, request, stages } = bench();
      Object.assign(request, { gatheredCycle: 223, transmittedCycle: 220, acknowledgedCycle: 220 });
      ledger.completed(request, end, isSilent);
      // WQE fetch 110→150, scheduling →155, payload read to the end.
      expect(stages()).toEqual([0, 40, 5, end - 155, 0, 0, 0, 0, 0].map((cycles) => cycles * 1000));
      expect(row.lifePs).toBe((end - 110) * 1000);
    },
  );

  it('gives a WQE that was on chip before it was posted no time of a fetch, and still leaves no gap', () => {
    const { ledger, row, request, stages } = bench({
      postedPs: () => 152_000,
      exactPostedPs: () => 152_000n,
      cqeIssued: () => undefined,
    });
    ledger.completed(request, 930, false);
    expect(stages()).toEqual([0, 0, 3, 35, 30, 0, 0, 680, 30].map((cycles) => cycles * 1000));
    expect(row.lifePs).toBe(778_000);
  });

  it('counts an operation of days in the same stages to the picosecond, and sums of many', () => {
    // The response arrives 30 days later.
    const waitedCycles = 30 * 86_400 * 1e9;
    const { ledger, row, request } = bench({
      postedPs: () => 100_000,
      exactPostedPs: () => 100_000n,
      cqeIssued: () => undefined,
    });
    request.acknowledgedCycle += waitedCycles;
    ledger.completed(request, 930 + waitedCycles, false);
    const remote = 680_000n + BigInt(waitedCycles) * 1000n;
    const expected = [10n, 40n, 5n, 35n, 30n, 0n, 0n].map((cycles) => cycles * 1000n);
    const farStages = (): bigint[] => messageStages.map((stage) => row.far!.stagesPs[stage]);
    expect(farStages()).toEqual([...expected, remote, 30_000n]);
    expect(row.far!.lifePs).toBe(150_000n + remote);
    // Three times one hour: times beyond the range of a number are added to the same sums.
    request.acknowledgedCycle = 900 + 3600e9;
    for (let turn = 0; turn < 3; turn++) ledger.completed(request, 930 + 3600e9, false);
    const lifePs = BigInt(row.lifePs) + row.far!.lifePs;
    expect(lifePs).toBe(150_000n + remote + 3n * (830_000n + 3600n * 10n ** 12n));
    expect(farStages().reduce((sum, ps) => sum + ps, 0n)).toBe(row.far!.lifePs);
    expect(row.lifePs).toBeLessThan(2 ** 52);
  });

  it('counts failures apart, without stages', () => {
    const { ledger, row, request, stages } = bench();
    request.syndrome = 5;
    ledger.completed(request, 930, false);
    expect(stages().every((ps) => ps === 0)).toBe(true);
    expect([row.count, row.failedCount]).toEqual([0, 1]);
  });

  it('keeps what earlier attempts waited for apart, in stages of their own', () => {
    const { ledger, row, request, stages } = bench();
    // Started at 155, gathered at 190, sent at 220: a time-out at 620, sent again at 660, an RNR NAK at 700, its delay to 950.
    request.earlier.add(request, 620, ENDED_BY_TIMEOUT);
    request.gatheredCycle = 640;
    request.transmittedCycle = 660;
    request.earlier.add(request, 700, ENDED_BY_ANSWER);
    request.earlier.add(request, 950, ENDED_BY_RNR_DELAY);
    request.gatheredCycle = 980;
    request.transmittedCycle = 1000;
    request.acknowledgedCycle = 1100;
    ledger.completed(request, 1130, false);
    const parts = [0, 40, 5, 35 + 20 + 30, 30 + 20 + 20, 620 - 220, 950 - 700, 40 + 100, 30];
    expect(stages()).toEqual(parts.map((cycles) => cycles * 1000));
    expect(row.lifePs).toBe((1130 - 110) * 1000);
  });

  it('ends the last attempt with the answer to an earlier one', () => {
    const { ledger, row, request, stages } = bench();
    request.earlier.add(request, 620, ENDED_BY_TIMEOUT);
    request.gatheredCycle = 1200;
    request.acknowledgedCycle = 640;
    ledger.completed(request, 650, false);
    expect(stages()).toEqual([0, 40, 5, 35 + 20, 30, 400, 0, 0, 10].map((cycles) => cycles * 1000));
    expect(row.lifePs).toBe((650 - 110) * 1000);
  });

  /** IBTA vol 1, 9.7.6.1.3: 4.096 us times 2 to the power of the code; 9.7.5.2.8, table 45: RNR timer code 1 is 0.01 ms. */
  it.each([
    ['ackTimeout', 4, 65_536_000],
    ['rnrDelay', 0, 10_000_000],
  ] as const)('IBTA 9.7.6.1.3: shows %s as long as it is', async (stage, ackTimeout, expectedPs) => {
    const { bench: machine, a, b, aCq, local, remote, target } = await scene({ ackTimeout });
    const write = { opcode: WqeOpcode.RDMA_WRITE_IMM, segments: [local.part(0, 3000)], remote: target };
    b.receive([remote.part(0, 100)]);
    a.send(write);
    await machine.until(() => aCq.drain().length === 1, 100);
    const { stagesPs } = machine.a.dataPath.parts.operations.rows[WqeOpcode.RDMA_WRITE_IMM]!;
    const before = { ...stagesPs };
    if (ackTimeout > 0) b.receive([remote.part(0, 100)]);
    let lost = ackTimeout > 0 ? 3 : 0;
    machine.b.port.drops = () => lost-- > 0;
    a.send(write);
    await machine.run(8);
    if (ackTimeout === 0) b.receive([remote.part(0, 100)]);
    await machine.until(() => aCq.drain().length === 1, 100);
    await machine.run(2);
    // Times end at edges of the device's clock, and begin with one.
    expect(stagesPs[stage]).toBeGreaterThanOrEqual(expectedPs);
    expect(stagesPs[stage]).toBeLessThan(expectedPs + 10_000);
    expect([before.ackTimeout, before.rnrDelay]).toEqual([0, 0]);
    // The payload is read once more for the second attempt, and no slower than for the first.
    expect(stagesPs.payloadRead - before.payloadRead).toBeLessThan(2 * before.payloadRead + 100_000);
    const { lifePs } = machine.a.dataPath.parts.operations.rows[WqeOpcode.RDMA_WRITE_IMM]!;
    expect(messageStages.reduce((sum, name) => sum + stagesPs[name], 0)).toBe(lifePs);
  });

  it('tiles the lives of all operations in a running machine', async () => {
    const { bench: machine, a, b, aCq, local, remote, target } = await scene();
    b.receive([remote.part(0, 100)]);
    b.receive([remote.part(0, 100)]);
    b.receive([remote.part(0, 100)]);
    const part = { segments: [local.part(0, 8)], remote: target };
    for (const opcode of movingOpcodes) {
      const isAtomic = opcode === WqeOpcode.ATOMIC_CS || opcode === WqeOpcode.ATOMIC_FA;
      a.send({
        opcode,
        ...(opcode === WqeOpcode.NOP ? {} : part),
        ...(isAtomic ? { swapOrAdd: 1n, compare: 0n } : {}),
      });
    }
    await machine.until(() => aCq.takenCount() === 8, 100);
    await machine.run(2);
    const { operations } = machine.a.dataPath.parts;
    for (const opcode of movingOpcodes) {
      const { count, lifePs, stagesPs } = operations.rows[opcode]!;
      expect([opcode, count]).toEqual([opcode, 1]);
      expect(messageStages.reduce((sum, stage) => sum + stagesPs[stage], 0)).toBe(lifePs);
      expect(lifePs).toBeGreaterThan(0);
    }
    expect(operations.disorderCount).toBe(0);
  });
});
