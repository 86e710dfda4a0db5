import { describe, expect, it } from 'vitest';
import { extendedHeaders, grh, lrh } from './headers.ts';
import {
  endsMessage,
  hasImmediate,
  hasPayload,
  isKnownOpcode,
  isRequest,
  Opcode,
  opcodeRow,
  opcodeTable,
  operandBytes,
  packetBytesOf,
  padBytes,
  startsMessage,
  transportHeaderBytes,
} from './opcodes.ts';

describe('the header layouts', () => {
  it('IBTA 7.7, 8.3, 9.3: have the sizes of the standard', () => {
    const sizes = Object.fromEntries(
      Object.entries(extendedHeaders).map(([name, { sizeBytes }]) => [name, sizeBytes]),
    );
    expect(sizes).toEqual({
      RDETH: 4,
      XRCETH: 4,
      DETH: 8,
      RETH: 16,
      AtomicETH: 28,
      MaskedAtomicETH: 44,
      AETH: 4,
      AtomicAckETH: 8,
      ImmDt: 4,
      IETH: 4,
      CNP: 16,
    });
    expect([lrh.sizeBytes, grh.sizeBytes]).toEqual([8, 40]);
  });

  it('place fields where a captured RC SEND Only has them', () => {
    // LRH: VL 0, SL 0, LNH 2 (BTH follows), DLID 4, 9 dwords, SLID 1.
    const bytes = lrh.encode({ linkNextHeader: 2, destinationLid: 4, packetLength: 9, sourceLid: 1 });
    expect([...bytes]).toEqual([0x00, 0x02, 0x00, 0x04, 0x00, 0x09, 0x00, 0x01]);
  });
});

describe('the opcode table', () => {
  // IBTA volume 1, table of OpCode values in 9.2: bits 4:0, meaning, headers after the BTH.
  const specification: [number, string, string][] = [
    [0x00, 'SEND_FIRST', ''],
    [0x01, 'SEND_MIDDLE', ''],
    [0x02, 'SEND_LAST', ''],
    [0x03, 'SEND_LAST_WITH_IMMEDIATE', 'ImmDt'],
    [0x04, 'SEND_ONLY', ''],
    [0x05, 'SEND_ONLY_WITH_IMMEDIATE', 'ImmDt'],
    [0x06, 'RDMA_WRITE_FIRST', 'RETH'],
    [0x07, 'RDMA_WRITE_MIDDLE', ''],
    [0x08, 'RDMA_WRITE_LAST', ''],
    [0x09, 'RDMA_WRITE_LAST_WITH_IMMEDIATE', 'ImmDt'],
    [0x0a, 'RDMA_WRITE_ONLY', 'RETH'],
    [0x0b, 'RDMA_WRITE_ONLY_WITH_IMMEDIATE', 'RETH ImmDt'],
    [0x0c, 'RDMA_READ_REQUEST', 'RETH'],
    [0x0d, 'RDMA_READ_RESPONSE_FIRST', 'AETH'],
    [0x0e, 'RDMA_READ_RESPONSE_MIDDLE', ''],
    [0x0f, 'RDMA_READ_RESPONSE_LAST', 'AETH'],
    [0x10, 'RDMA_READ_RESPONSE_ONLY', 'AETH'],
    [0x11, 'ACKNOWLEDGE', 'AETH'],
    [0x12, 'ATOMIC_ACKNOWLEDGE', 'AETH AtomicAckETH'],
    [0x13, 'COMPARE_SWAP', 'AtomicETH'],
    [0x14, 'FETCH_ADD', 'AtomicETH'],
    [0x16, 'SEND_LAST_WITH_INVALIDATE', 'IETH'],
    [0x17, 'SEND_ONLY_WITH_INVALIDATE', 'IETH'],
  ];
  const masked: [number, string, string][] = [
    [0x18, 'MASKED_COMPARE_SWAP', 'MaskedAtomicETH'],
    [0x19, 'MASKED_FETCH_ADD', 'AtomicETH'],
  ];

  it('IBTA 9.2: has the RC opcodes with their headers', () => {
    const ours = opcodeTable
      .filter(({ service }) => service === 'RC')
      .map(({ opcode, name, headers }) => [opcode, name.slice(3), headers.join(' ')]);
    expect(ours).toEqual([...specification, ...masked]);
  });

  it('has masked atomics where the standard has no RC opcode', () => {
    const taken = specification.map(([opcode]) => opcode);
    expect(masked.filter(([opcode]) => taken.includes(opcode) || opcode > 0x1f)).toEqual([]);
    // LRH 8 + BTH 12 + ICRC 4 + VCRC 2; address 8, R_Key 4, and two or four operands of 8.
    expect(packetBytesOf(Opcode.RC_MASKED_FETCH_ADD, 0, false)).toBe(26 + 12 + 16);
    expect(packetBytesOf(Opcode.RC_MASKED_COMPARE_SWAP, 0, false)).toBe(26 + 12 + 32);
  });

  it('IBTA 9.2: repeats sends and writes for UC at 0x20, and single-packet sends for UD at 0x64', () => {
    const uc = opcodeTable.filter(({ service }) => service === 'UC');
    expect(uc.map(({ opcode, name, headers }) => [opcode, name.slice(3), headers.join(' ')])).toEqual(
      specification.slice(0, 12).map(([opcode, name, headers]) => [opcode + 0x20, name, headers]),
    );
    const ud = opcodeTable.filter(({ service }) => service === 'UD');
    expect(ud.map(({ opcode, headers }) => [opcode, headers.join(' ')])).toEqual([
      [0x64, 'DETH'],
      [0x65, 'DETH ImmDt'],
    ]);
  });

  it('IBTA annex A14: repeats the RC opcodes for XRC at 0xa0, with the SRQ before a request’s own headers', () => {
    const isResponse = (name: string): boolean => /RESPONSE|ACKNOWLEDGE/.test(name);
    const xrc = opcodeTable.filter(({ service }) => service === 'XRC');
    expect(xrc.map(({ opcode, name, headers }) => [opcode, name.slice(4), headers.join(' ')])).toEqual(
      specification.map(([opcode, name, headers]) => [
        opcode + 0xa0,
        name,
        isResponse(name) ? headers : `XRCETH ${headers}`.trim(),
      ]),
    );
  });

  it('IBTA 9.2: has for RD the operations of RC without invalidation, plus RESYNC, with the context and datagram headers first', () => {
    const rd = opcodeTable.filter(({ service }) => service === 'RD');
    const ofOperations = specification
      .slice(0, 21)
      .map(([opcode, name, headers]) => [
        opcode + 0x40,
        name,
        `${/RESPONSE|ACKNOWLEDGE/.test(name) ? 'RDETH' : 'RDETH DETH'} ${headers}`.trim(),
      ]);
    expect(rd.map(({ opcode, name, headers }) => [opcode, name.slice(3), headers.join(' ')])).toEqual([
      ...ofOperations,
      [0x55, 'RESYNC', 'RDETH DETH'],
    ]);
  });

  it('IBTA annex A17: has a congestion notification of 16 reserved bytes at 0x81', () => {
    expect(opcodeRow(0x81)).toMatchObject({ name: 'CNP', service: 'CNP', headers: ['CNP'] });
    expect(transportHeaderBytes(Opcode.CNP)).toBe(12 + 16);
  });

  it('IBTA annex A10: has a congestion notification of InfiniBand with a BTH alone at 0x80', () => {
    expect(opcodeRow(0x80)).toMatchObject({ name: 'CNP_INFINIBAND', service: 'CNP', headers: [] });
    // LRH 8 + BTH 12 + ICRC 4 + VCRC 2.
    expect(packetBytesOf(Opcode.CNP_INFINIBAND, 0, false)).toBe(26);
  });

  it('derives the tests on an opcode from its row', () => {
    for (const row of opcodeTable) {
      expect(opcodeRow(row.opcode)).toBe(row);
      expect(isKnownOpcode(row.opcode)).toBe(true);
      expect(startsMessage(row.opcode)).toBe(
        /FIRST|ONLY|REQUEST|ACKNOWLEDGE|SWAP|ADD|RESYNC|CNP/.test(row.name),
      );
      expect(endsMessage(row.opcode)).toBe(!/FIRST|MIDDLE/.test(row.name));
      expect(hasImmediate(row.opcode)).toBe(/IMMEDIATE/.test(row.name));
      expect(hasPayload(row.opcode)).toBe(/SEND|WRITE|RESPONSE/.test(row.name));
      expect(isRequest(row.opcode)).toBe(!/RESPONSE|ACKNOWLEDGE|CNP/.test(row.name));
    }
    expect(isKnownOpcode(0x15)).toBe(false);
    expect(opcodeRow(0x15)).toBeUndefined();
  });

  it('IBTA 7.7: adds up packet sizes from LRH to VCRC', () => {
    // LRH 8 + BTH 12 + RETH 16 + 64 + ICRC 4 + VCRC 2.
    expect(packetBytesOf(Opcode.RC_RDMA_WRITE_ONLY, 64, false)).toBe(106);
    // LRH 8 + BTH 12 + AETH 4 + ICRC 4 + VCRC 2.
    expect(packetBytesOf(Opcode.RC_ACKNOWLEDGE, 0, false)).toBe(30);
    // LRH 8 + BTH 12 + AtomicETH 28 + 6; its response: AETH 4 + AtomicAckETH 8.
    expect(packetBytesOf(Opcode.RC_FETCH_ADD, 0, false)).toBe(54);
    expect(packetBytesOf(Opcode.RC_ATOMIC_ACKNOWLEDGE, 0, false)).toBe(38);
    // One payload byte is padded to four; a GRH adds 40.
    expect(packetBytesOf(Opcode.RC_SEND_ONLY, 1, false)).toBe(30);
    expect(packetBytesOf(Opcode.RC_SEND_ONLY, 1, true)).toBe(70);
    // A MAD: LRH 8 + BTH 12 + DETH 8 + 256 + 6.
    expect(packetBytesOf(Opcode.UD_SEND_ONLY, 256, false)).toBe(290);
    expect([0, 1, 2, 3, 4].map(padBytes)).toEqual([0, 3, 2, 1, 0]);
  });

  it('adds the bytes of all extended headers', () => {
    expect(transportHeaderBytes(Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE)).toBe(32);
  });

  it('keeps atomic operands separate from payload', () => {
    expect(operandBytes(Opcode.RC_COMPARE_SWAP)).toBe(16);
    expect(operandBytes(Opcode.RC_MASKED_COMPARE_SWAP)).toBe(32);
    expect(operandBytes(Opcode.RC_ATOMIC_ACKNOWLEDGE)).toBe(8);
    expect(operandBytes(Opcode.RC_SEND_ONLY)).toBe(0);
  });
});
