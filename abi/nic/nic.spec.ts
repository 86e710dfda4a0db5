import { describe, expect, test } from 'vitest';
import { toHex } from '../../base/bytes.ts';
import { fieldOf, withField } from '../../base/registers.ts';
import {
  ethernetHeader,
  NicCause,
  nicBar0,
  nicBits,
  nicCauseGroup,
  nicReceiveDescriptor,
  nicTransmitDescriptor,
} from './index.ts';

describe('the registers of the NIC', () => {
  test('are at the offsets of the 8254x and 82574', () => {
    const offsets = Object.fromEntries(
      Object.entries(nicBar0.registers).map(([name, r]) => [name, r.offset]),
    );
    expect(offsets).toMatchObject({
      ctrl: 0,
      status: 8,
      icr: 0xc0,
      ics: 0xc8,
      ims: 0xd0,
      imc: 0xd8,
      eiac: 0xdc,
      iam: 0xe0,
      ivar: 0xe4,
      eitr: 0xe8,
      rctl: 0x100,
      tctl: 0x400,
      pba: 0x1000,
      rdbal: 0x2800,
      rdlen: 0x2808,
      rdh: 0x2810,
      rdt: 0x2818,
      rxdctl: 0x2828,
      tdbal: 0x3800,
      tdlen: 0x3808,
      tdh: 0x3810,
      tdt: 0x3818,
      txdctl: 0x3828,
      crcerrs: 0x4000,
      mpc: 0x4010,
      gprc: 0x4074,
      gptc: 0x4080,
      rnbc: 0x40a0,
      rxcsum: 0x5000,
      ral: 0x5400,
      rah: 0x5404,
    });
  });

  test('accept a frame of any length at any dword of 256 KiB in PIOTX', () => {
    const { length, offset, go } = nicBits.piotx;
    let value = withField(0, length, 9014);
    value = withField(value, offset, 0x3_fffc / 4);
    value = withField(value, go, 1);
    expect([fieldOf(value, length), fieldOf(value, offset) * 4, fieldOf(value, go)]).toEqual([
      9014, 0x3_fffc, 1,
    ]);
  });
});

test('every cause is in exactly one group', () => {
  const groups = Object.values(nicCauseGroup);
  for (const cause of Object.values(NicCause)) {
    expect(groups.filter((group) => (group & cause) !== 0)).toHaveLength(1);
  }
});

describe('the descriptors of the NIC', () => {
  test('are those of the 8254x, byte for byte', () => {
    const transmit = nicTransmitDescriptor.encode({
      bufferAddress: 0x1_2345_6780n,
      length: 0x5ea,
      checksumOffset: 0x32,
      endOfPacket: 1,
      insertChecksum: 1,
      reportStatus: 1,
      checksumStart: 0x22,
    });
    expect(toHex(transmit)).toBe('8067452301000000ea05320d00220000');
    const receive = nicReceiveDescriptor.encode({
      bufferAddress: 0x1000n,
      length: 60,
      checksum: 0xbeef,
      done: 1,
      endOfPacket: 1,
    });
    expect(toHex(receive)).toBe('00100000000000003c00efbe03000000');
  });
});

test('the Ethernet type is the thirteenth and fourteenth byte, high byte first', () => {
  expect(toHex(ethernetHeader.encode({ type: 0x0800 })).slice(24)).toBe('0800');
});
