/**
 * Whatever software writes into mailboxes, modifiers and registers, the device answers, touches no memory except that
 * given to it, and after a reset equals a fresh device, to the byte and to the cycle.
 */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bar0 } from '../../../../abi/bar-map.ts';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { type CommandName, commands } from '../../../../abi/commands.ts';
import { cqc } from '../../../../abi/cqc.ts';
import { eqc } from '../../../../abi/eqc.ts';
import { EventType } from '../../../../abi/eqe.ts';
import { mailboxBytes } from '../../../../abi/hcr.ts';
import { initHca } from '../../../../abi/init-hca.ts';
import { MadClass, MadMethod, SmpAttribute, smp } from '../../../../abi/mad.ts';
import { mcgHead } from '../../../../abi/mcg.ts';
import { mpt } from '../../../../abi/mpt.ts';
import { setPortInfiniband } from '../../../../abi/ports.ts';
import { qpMailbox } from '../../../../abi/qpc.ts';
import { queryDevCap } from '../../../../abi/query-dev-cap.ts';
import { srqc } from '../../../../abi/srqc.ts';
import { viewOf } from '../../../../base/index.ts';
import { CommandDma } from '../../commands/command-dma.ts';
import type { CommandRejection } from '../../commands/command-steps.ts';
import {
  broughtUp,
  bufferAddress,
  chunkLogPages,
  createCq,
  createEq,
  createSrq,
  donateIcm,
  firstMptIndex,
  firstQpn,
  icmBase,
  icmHostBase,
  initMailbox,
  must,
  profile,
  startFirmware,
} from '../../testing/bring-up.ts';
import { BumpAllocator, ControlBench } from '../../testing/control-bench.ts';
import { emptyEntries } from './queue-buffer.ts';

const { OK, BAD_PARAM, EXCEED_LIM, INTERNAL_ERR } = CommandStatus;
const statuses: readonly number[] = Object.values(CommandStatus);
/** Queues whose buffers are written in a moment; a machine whose tables a hostile driver can fill. */
const small = { logMaxCqEntries: 10, logMaxEqEntries: 10 } as const;

/**
 * Records every answer and every access of the device, with their times, while a driver initialises it from the first
 * register on.
 */
function lifeOf(bench: ControlBench): unknown[] {
  bench.toggle = 1;
  bench.run();
  const begin = bench.cycle;
  const { writeLog, readLog } = bench.dma;
  const { messages } = bench.interrupts;
  const [writes, reads, interrupts] = [writeLog.length, readLog.length, messages.length];
  const answers: unknown[] = [];
  const ask = (name: CommandName, options: Parameters<ControlBench['command']>[1] = {}): void => {
    const { status, out, outBox } = bench.command(name, options);
    answers.push([name, status, out, Buffer.from(outBox).toString('hex'), bench.cycle - begin]);
  };
  ask('QUERY_FW', { outBytes: 256 });
  startFirmware(bench);
  ask('QUERY_DEV_CAP', { outBytes: 256 });
  donateIcm(bench);
  ask('QUERY_HCA', { outBytes: 512 });
  ask('INIT_HCA', { inBox: initHca.encode(profile) });
  const eqn = createEq(bench, 0);
  ask('MAP_EQ', { inParam: 2 ** EventType.CMD + 2 ** EventType.PORT_CHANGE, inputModifier: eqn });
  const cqn = createCq(bench, 1, eqn);
  ask('READ_MCG', { outBytes: 1024, inputModifier: 5 });
  createSrq(bench);
  must(bench, 'RST2INIT_QP', { inBox: initMailbox(cqn), inputModifier: firstQpn });
  ask('QUERY_QP', { outBytes: 256, inputModifier: firstQpn });
  ask('INIT_PORT', { inputModifier: 1 });
  bench.cable.set(true);
  bench.run();
  for (const attributeId of [SmpAttribute.NODE_DESC, SmpAttribute.PORT_INFO, SmpAttribute.GUID_INFO]) {
    const start = { baseVersion: 1, managementClass: MadClass.SUBN_LID_ROUTED, classVersion: 1 } as const;
    const inBox = smp.encode({ ...start, method: MadMethod.GET, attributeId });
    ask('MAD_IFC', { inBox, outBytes: 256, inputModifier: 1 });
  }
  bench.post('NOP', { byEvent: true, token: 7 });
  bench.run();
  answers.push(Buffer.from(bench.memory.read(bufferAddress(0), 4096)).toString('hex'));
  answers.push(Buffer.from(bench.memory.read(bufferAddress(1), 4096)).toString('hex'));
  for (const { cycle, bytes, ...write } of writeLog.slice(writes))
    answers.push({ ...write, cycle: cycle - begin, bytes: Buffer.from(bytes).toString('hex') });
  for (const { cycle, ...read } of readLog.slice(reads)) answers.push({ ...read, cycle: cycle - begin });
  for (const { cycle, vector } of messages.slice(interrupts)) answers.push({ vector, cycle: cycle - begin });
  bench.cable.set(false);
  return answers;
}

/** The reset register, and memory as at power-on: the next driver's pages are its own. */
function reset(bench: ControlBench): void {
  bench.write32(bar0.registers.reset.offset, 1);
  bench.run();
  bench.memory.clear();
}

const firstLife = lifeOf(new ControlBench({}, small));

describe('INIT_HCA', () => {
  const refused = (fields: object): number => {
    const bench = new ControlBench();
    startFirmware(bench);
    donateIcm(bench);
    return bench.command('INIT_HCA', { inBox: initHca.encode({ ...profile, ...fields }) }).status;
  };

  it.each([
    ['entries of 2^13 bytes in the multicast table', { logMcgEntryBytes: 13 }],
    ['entries of 2^31 bytes in the multicast table', { logMcgEntryBytes: 31 }],
    ['entries of one byte in the multicast table', { logMcgEntryBytes: 0 }],
    ['more hash heads than multicast entries', { logMcgHashEntries: 14 }],
    ['more multicast entries than groups', { logMcgEntries: 14 }],
    ['a QP table that ends beyond ICM', { qpcBase: 2n ** 40n - 2n ** 20n }],
    ['an MTT table that begins beyond ICM', { mttBase: 2n ** 63n }],
    ['a wider completion entry', { logCqeStrideMinus5: 1 }],
    ['a wider event entry', { logEqeStrideMinus5: 1 }],
    ['unicast steering', { unicastSteering: 1 }],
    ['device-managed steering', { deviceManagedSteering: 1 }],
    ['checksum offload', { checksum: 1 }],
    ['flow counters', { counters: 1 }],
  ])('sheet 3.10: refuses %s, which QUERY_DEV_CAP does not offer', (_what, fields) => {
    expect(refused(fields)).toBe(BAD_PARAM);
  });

  it.each([
    ['logQps', 'logMaxQps'],
    ['logCqs', 'logMaxCqs'],
    ['logSrqs', 'logMaxSrqs'],
    ['logEqs', 'logMaxEqs'],
    ['logDmpts', 'logMaxMpts'],
    ['logMcgEntries', 'logMaxGroups'],
  ] as const)('sheet 3.7: takes of %s what QUERY_DEV_CAP says and no more', (field, limit) => {
    const bench = new ControlBench();
    startFirmware(bench);
    const { outBox } = bench.command('QUERY_DEV_CAP', { outBytes: 256 });
    const largest = queryDevCap.decode(outBox)[limit];
    // Alone at the end of the tables, so that the longest of them fits into ICM.
    const bases = { qpcBase: 2n ** 38n, rdmarcBase: 2n ** 39n, mcgBase: 2n ** 37n };
    expect(refused({ ...bases, [field]: largest })).toBe(OK);
    expect(refused({ ...bases, [field]: largest + 1 })).toBe(BAD_PARAM);
  });

  it('sheet 3.10: refuses any field of all ones, but for those that tell the device nothing it acts on', () => {
    const odd = initHca.decode(new Uint8Array(initHca.sizeBytes).fill(0xff));
    const taken = Object.entries(odd).filter(([name, value]) => refused({ [name]: value }) === OK);
    expect(taken.map(([name]) => name)).toEqual([
      // Answers of QUERY_HCA, hints about the host, a table that only virtual functions use.
      'version',
      'globalCapabilities',
      'coreClockMhz',
      'logCacheLineMinus4',
      'cacheLineValid',
      'phvCheckEnabled',
      'hostIsBigEndian',
      'udAvPortCheck',
      // Fields of cards with iWARP.
      'logTcpConnections',
      // QUERY_DEV_CAP reports all ones.
      'logRdmarcPerQp',
      'memoryWindowsEnabled',
      'cmptBase',
      'driverVersion',
      // Fields of steering modes that are refused on request.
      'flowSteeringBase',
      'logFlowSteeringEntryBytes',
      'highRateSteering',
      'logFlowSteeringEntries',
      'ethernetSteering',
      'ethernetL2Addresses',
      'ipoibSteering',
      'ipoibL2Addresses',
    ]);
  });

  it('takes what it offers: entries of 64 bytes to a mailbox', () => {
    for (const logMcgEntryBytes of [6, 10, 12]) expect(refused({ logMcgEntryBytes })).toBe(OK);
  });
});

describe('the multicast commands', () => {
  it('sheet 3.18: read and write entries of a whole mailbox, and leave the patterns of new queues alone', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    donateIcm(bench);
    must(bench, 'INIT_HCA', { inBox: initHca.encode({ ...profile, logMcgEntryBytes: 12 }) });
    const entry = new Uint8Array(mailboxBytes).fill(0xff);
    mcgHead.fields.memberCount.set(viewOf(entry), 0, 256);
    must(bench, 'WRITE_MCG', { inBox: entry, inputModifier: 3 });
    expect(must(bench, 'READ_MCG', { outBytes: mailboxBytes, inputModifier: 3 }).outBox).toEqual(entry);
    createEq(bench, 0);
    // 128 entries that software does not consider valid: zeros except the owner bit of each.
    const expected = new Uint8Array(4096);
    for (let at = 31; at < 4096; at += 32) expected[at] = 0x80;
    expect(bench.memory.read(bufferAddress(0), 4096)).toEqual(expected);
  });

  it('sheet 3.18: hold two default entries for each port, and no others', () => {
    const bench = broughtUp({}, { portCount: 2 });
    const write = (inputModifier: number): number =>
      bench.command('WRITE_MCG', { inBox: new Uint8Array(1024), inputModifier, opcodeModifier: 1 }).status;
    for (const named of [0x1_0000, 0x1_0002, 0x2_0000, 0x2_0002]) expect(write(named)).toBe(OK);
    for (const unnamed of [0, 2, 0x1_0001, 0x1_0004, 0x3_0000, 0x8001_0000, 0xffff_ffff])
      expect(write(unnamed)).toBe(BAD_PARAM);
    expect(bench.commandSet.state.defaultGroups.size).toBe(4);
  });

  it('sheet 3.7: refuse more members than QUERY_DEV_CAP offers, whatever fits', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    donateIcm(bench);
    must(bench, 'INIT_HCA', { inBox: initHca.encode({ ...profile, logMcgEntryBytes: 12 }) });
    const entry = new Uint8Array(mailboxBytes);
    mcgHead.fields.memberCount.set(viewOf(entry), 0, 257);
    expect(bench.command('WRITE_MCG', { inBox: entry }).status).toBe(EXCEED_LIM);
  });
});

describe('contexts', () => {
  const qp = (fields: object): number => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    return bench.command('RST2INIT_QP', { inBox: initMailbox(cqn, fields), inputModifier: firstQpn }).status;
  };

  it.each([
    ['reliable datagrams, which no capability names', { serviceType: 2 }, BAD_PARAM],
    ['blocks above the largest send descriptor', { sqLogStride16: 7 }, BAD_PARAM],
    [
      'blocks above the largest receive descriptor',
      { rqLogStride16: 6, doorbellRecordAddress: 64n },
      BAD_PARAM,
    ],
    ['a longer receive queue', { rqLogCount: 15, doorbellRecordAddress: 64n }, EXCEED_LIM],
    ['pages above 2 GiB', { logPageSize4k: 20 }, BAD_PARAM],
    ['messages above 1 GiB', { logMaxMessage: 31 }, BAD_PARAM],
    ['a path MTU that is none', { pathMtu: 6 }, BAD_PARAM],
    ['the second of one port', { primaryPath: { scheduleQueue: 0xc3 } }, BAD_PARAM],
  ])('sheet 5.1: of a QP are refused with %s', (_what, fields, status) => {
    expect(qp(fields)).toBe(status);
  });

  it('sheet 5.4: of regions are refused with lengths, pages and kinds that are not offered', () => {
    const bench = broughtUp();
    const region = (fields: Parameters<typeof mpt.encode>[0]): number =>
      bench.command('SW2HW_MPT', {
        inBox: mpt.encode({ isRegion: 1, logPageSize: 12, lengthBytes: 4096n, ...fields }),
        inputModifier: firstMptIndex,
      }).status;
    expect(region({ isRegion: 0 })).toBe(BAD_PARAM);
    expect(region({ lengthBytes: 2n ** 40n + 1n })).toBe(BAD_PARAM);
    expect(region({ logPageSize: 8 })).toBe(BAD_PARAM);
    expect(region({ logPageSize: 32 })).toBe(BAD_PARAM);
    expect(region({ lengthBytes: 2n ** 64n - 1n, isPhysical: 1, logPageSize: 0 })).toBe(OK);
  });

  it('mlx4_ib, MLX4_MAX_MTT_SHIFT: of regions and QPs may have pages of 2 GiB', () => {
    const bench = broughtUp();
    const inBox = mpt.encode({ isRegion: 1, logPageSize: 31, lengthBytes: 4096n });
    expect(bench.command('SW2HW_MPT', { inBox, inputModifier: firstMptIndex }).status).toBe(OK);
    expect(qp({ logPageSize4k: 31 - 12 })).toBe(OK);
  });

  it('sheet 3.10: of responder resources end where INIT_HCA ends them', () => {
    const bench = broughtUp();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    must(bench, 'RST2INIT_QP', { inBox: initMailbox(cqn), inputModifier: firstQpn });
    const toRtr = (logMaxResponderReads: number): number =>
      bench.command('INIT2RTR_QP', {
        inBox: qpMailbox.encode({ context: { pathMtu: 5, logMaxResponderReads } }),
        inputModifier: firstQpn,
      }).status;
    expect([toRtr(5), toRtr(4)]).toEqual([BAD_PARAM, OK]);
  });
});

describe('the DMA of commands', () => {
  it('starts nothing that is longer than its buffer, or empty, or no whole number of entries', () => {
    const bench = new ControlBench();
    const sram = new BumpAllocator(64 * 1024);
    const dma = new CommandDma({
      reads: bench.dma,
      writes: bench.dma,
      sram,
      writesInFlightMax: 4,
      patterns: emptyEntries,
    });
    dma.connect({ processor: { dmaDone: () => {} } });
    const after = sram.bytes.slice();
    const refusal = (start: () => void): unknown => {
      try {
        start();
        return OK;
      } catch (error) {
        return (error as CommandRejection).status;
      }
    };
    for (const lengthBytes of [0, mailboxBytes + 1, 2 ** 20]) {
      expect(refusal(() => dma.startRead(0x5000, lengthBytes))).toBe(INTERNAL_ERR);
      expect(refusal(() => dma.startWrite(0x5000, new Uint8Array(lengthBytes).fill(1)))).toBe(INTERNAL_ERR);
    }
    expect(refusal(() => dma.startFill(0x5004, 32, 1))).toBe(INTERNAL_ERR);
    expect(refusal(() => dma.startFill(0x5000, 48, 1))).toBe(INTERNAL_ERR);
    bench.run();
    expect([bench.dma.readLog, bench.dma.writeLog]).toEqual([[], []]);
    expect(sram.bytes).toEqual(after);
    // A reset rewrites the patterns, whatever they held.
    sram.bytes.fill(0xee, 0, 4 * mailboxBytes);
    dma.reset();
    expect(sram.bytes).toEqual(after);
  });
});

/** Numbers at which something happens, and any others. */
const word = fc.oneof(
  fc.constantFrom(0, 1, 4, 5, 64, 128, 129, 256, 0x1_0000, 0x8000_0004, 0xffff_ffff),
  fc.nat({ max: 0xffff_ffff }),
);
/** A plausible mailbox: a valid one of some command with a few bytes changed, or noise. */
const rightBoxes: readonly Uint8Array[] = [
  initHca.encode(profile),
  cqc.encode({ logEntries: 7, uarPage: 200, eqn: 4, mttAddress: 0x800 }),
  eqc.encode({ armState: 9, logEntries: 7 }),
  srqc.encode({ logWqes: 8, logStride16: 2, pd: 5 }),
  initMailbox(129),
  qpMailbox.encode({ context: { pathMtu: 5 } }),
  mpt.encode({ isRegion: 1, logPageSize: 12, lengthBytes: 4096n }),
  mcgHead.encode({ memberCount: 1 }),
  setPortInfiniband.encode({ changeMtuCap: 1, mtuCap: 3, guid0Valid: 1, guid0: 99n }),
  smp.encode({
    baseVersion: 1,
    managementClass: MadClass.SUBN_LID_ROUTED,
    classVersion: 1,
    method: MadMethod.SET,
    attributeId: SmpAttribute.PORT_INFO,
  }),
  new Uint8Array(64).fill(0x41),
];
const changes = fc.array(fc.tuple(fc.nat({ max: 511 }), fc.nat({ max: 255 })), { maxLength: 4 });
const mailbox = fc.oneof(
  fc.uint8Array({ minLength: 512, maxLength: 512 }),
  fc.tuple(fc.constantFrom(...rightBoxes), changes).map(([right, changed]) => {
    const box = new Uint8Array(512);
    box.set(right.subarray(0, 512));
    for (const [at, byte] of changed) box[at] = byte;
    return box;
  }),
);
const opcodes = Object.values(commands).map(({ opcode }) => opcode);
const command = fc.record({
  opcode: fc.oneof(
    { arbitrary: fc.constantFrom(...opcodes), weight: 9 },
    { arbitrary: fc.nat({ max: 0xfff }), weight: 1 },
  ),
  opcodeModifier: fc.oneof(fc.constantFrom(0, 0, 1, 2, 3), fc.nat({ max: 15 })),
  inputModifier: word,
  box: mailbox,
  byEvent: fc.integer({ min: 0, max: 7 }).map((chance) => chance === 0),
});
const register = fc.tuple(
  fc.oneof(
    fc.constantFrom(...Object.values(bar0.registers).map(({ offset }) => offset)),
    fc.nat({ max: bar0.sizeBytes / 4 - 1 }).map((index) => index * 4),
  ),
  word,
);

describe('whatever software does', () => {
  it('every command ends with a status, and the next life is the first one to the cycle', () => {
    const steps = fc.array(fc.oneof({ arbitrary: command, weight: 8 }, { arbitrary: register, weight: 1 }), {
      minLength: 1,
      maxLength: 30,
    });
    fc.assert(
      fc.property(steps, fc.boolean(), (sequence, isUp) => {
        const bench = new ControlBench({}, small);
        if (isUp) bringUp(bench);
        for (const step of sequence) {
          if ('opcode' in step) {
            const { opcode, box, ...options } = step;
            const outcome = bench.command(opcode, { ...options, inBox: box, outBytes: 1024 });
            if (!step.byEvent) expect(statuses).toContain(outcome.status);
          } else if (step[0] !== bar0.registers.hcr.offset + 0x18) {
            bench.write32(step[0], step[1]);
            bench.run(1000);
          }
        }
        expect(isWithin(bench)).toBe(true);
        reset(bench);
        expect(lifeOf(bench)).toEqual(firstLife);
      }),
      { numRuns: 250, seed: 20261123 },
    );
  });

  it('thousands of commands leave the device no larger than its tables', () => {
    const bench = broughtUp({}, small);
    for (let turn = 0; turn < 2000; turn++) {
      const inputModifier = Math.imul(turn, 0x9e37_79b1) >>> 0;
      bench.command('WRITE_MCG', { inBox: new Uint8Array(1024), inputModifier, opcodeModifier: turn & 1 });
      bench.command('MAP_EQ', { inputModifier });
      bench.command('CONF_SPECIAL_QP', { inputModifier });
    }
    const { state } = bench.commandSet;
    expect(state.defaultGroups.size).toBeLessThanOrEqual(2);
    expect(bench.control.blocks.drains.inspect()).toEqual({ draining: [] });
  });
});

function bringUp(bench: ControlBench): void {
  startFirmware(bench);
  donateIcm(bench);
  must(bench, 'INIT_HCA', { inBox: initHca.encode(profile) });
  createCq(bench, 1, createEq(bench, 0));
}

/**
 * True when no access touched the pages after the mailboxes or after a donated chunk of ICM. No random number names
 * these pages, so an access there has overrun the end of a buffer.
 */
function isWithin(bench: ControlBench): boolean {
  const guards = [bench.outBoxAddress + mailboxBytes];
  for (const base of Object.values(icmBase)) guards.push(icmHostBase + base + 4096 * 2 ** chunkLogPages);
  const accesses = [
    ...bench.dma.readLog,
    ...bench.dma.writeLog.map(({ address, bytes }) => ({ address, lengthBytes: bytes.length })),
  ];
  return accesses.every(({ address, lengthBytes }) =>
    guards.every((guard) => address + lengthBytes <= guard || address >= guard + 4096),
  );
}
