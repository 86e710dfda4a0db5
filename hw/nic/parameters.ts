/** Sizes, clock and latencies of the conventional NIC, and its PCI function. Each has its source or "estimate". */
import { nicBar0Bytes, nicIdentity, nicMsix } from '../../abi/nic/index.ts';
import { type ConfigOf, flag, number, powerOfTwo } from '../../base/index.ts';
import { functionParameters } from '../pcie/index.ts';

const OWN = 'choice: abi/nic';

export const nicParameters = {
  coreClockMHz: number(
    250,
    'MHz',
    [50, 4000],
    'estimate: 16 bytes a cycle are 32 Gb/s',
    'Clock of every block of the NIC.',
  ),
  transmitBufferKib: number(
    64,
    'KiB',
    [16, 128],
    'estimate: Intel 82599 has 160 KiB for sending, the 82574 40 KiB for both',
    'Transmit half of the on-board packet buffer, the first of BAR2.',
  ),
  receiveBufferKib: number(
    64,
    'KiB',
    [16, 128],
    'estimate: Intel 82599 has 512 KiB for receiving, the 82574 40 KiB for both',
    'Receive half of the on-board packet buffer, behind the transmit half.',
  ),
  descriptorCacheEntries: powerOfTwo(
    64,
    'entries',
    [1, 1024],
    'Intel 8254x manual, 3.2.4: 64 descriptors on chip for each direction',
    'Descriptors on chip, for each ring.',
  ),
  descriptorCycles: number(
    8,
    'cycles',
    [1, 1000],
    'estimate',
    'Cycles an engine is occupied by taking up a descriptor.',
  ),
  burstBytes: powerOfTwo(
    256,
    'bytes',
    [16, 4096],
    'estimate: the usual MPS',
    'Bytes a bus-master engine moves by one request; its registers count when such a burst has moved.',
  ),
  burstsOutstanding: number(8, 'bursts', [1, 64], 'estimate', 'Bursts of one transfer under way at once.'),
  writeBackDepth: number(
    16,
    'entries',
    [1, 256],
    'estimate',
    'Descriptor write-backs of one ring under way at once.',
  ),
  transmitLatencyCycles: number(
    25,
    'cycles',
    [1, 10_000],
    'estimate: 100 ns of checksum, FCS and MAC pipeline',
    'From a frame being whole in the packet buffer to the MAC taking it.',
  ),
  receiveLatencyCycles: number(
    25,
    'cycles',
    [1, 10_000],
    'estimate: 100 ns of FCS check, filter and parsing',
    'From a frame having moved into the packet buffer to the receive engine seeing it.',
  ),
  bufferBytesPerCycle: number(
    16,
    'bytes',
    [1, 256],
    'estimate: 128-bit datapath',
    'Width of the packet buffer towards the MAC and towards BAR2.',
  ),
  programmedFrames: number(4, 'frames', [1, 64], 'estimate', 'Frames of PIOTX waiting or being sent.'),
  resetCycles: number(
    250,
    'cycles',
    [1, 2 ** 30],
    'Intel 8254x manual, 13.4.1: about 1 us',
    'Time a reset by CTRL.RST takes.',
  ),
} as const;

export type NicConfig = ConfigOf<typeof nicParameters>;

/** The PCI function of the NIC: the parameters of hw/pcie with this card's defaults. */
export const nicFunctionParameters = {
  ...functionParameters,
  vendorId: number(nicIdentity.vendorId, 'id', [0, 0xfffe], OWN, 'Vendor id.'),
  deviceId: number(nicIdentity.deviceId, 'id', [0, 0xffff], OWN, 'Device id.'),
  revisionId: number(nicIdentity.revisionId, 'id', [0, 0xff], OWN, 'Revision.'),
  classCode: number(
    nicIdentity.classCode,
    'id',
    [0, 0xff_ffff],
    OWN,
    'Class, subclass and programming interface.',
  ),
  subsystemVendorId: number(nicIdentity.subsystemVendorId, 'id', [0, 0xffff], OWN, 'Subsystem vendor id.'),
  subsystemId: number(nicIdentity.subsystemId, 'id', [0, 0xffff], OWN, 'Subsystem id.'),
  serialNumberHigh: number(0, 'id', [0, 0xffff_ffff], 'estimate', 'Serial number, upper dword.'),
  serialNumberLow: number(0x8254, 'id', [0, 0xffff_ffff], 'estimate', 'Serial number, lower dword.'),
  bar0Bytes: powerOfTwo(nicBar0Bytes, 'bytes', [nicBar0Bytes, 2 ** 30], OWN, 'Size of BAR0, the registers.'),
  bar2Bytes: powerOfTwo(0x2_0000, 'bytes', [4096, 0x4_0000], OWN, 'Size of BAR2, the packet buffer.'),
  vpdPresent: flag(false, 'choice', 'Whether vital product data can be read.'),
  msixVectorCount: number(
    nicMsix.vectorCount,
    'vectors',
    [1, nicMsix.vectorCount],
    OWN,
    'Entries of the MSI-X table.',
  ),
  msixTableOffset: number(
    nicMsix.tableOffset,
    'bytes',
    [nicMsix.tableOffset, nicMsix.tableOffset],
    OWN,
    'Place of the MSI-X table in BAR0.',
  ),
  msixPendingOffset: number(
    nicMsix.pendingOffset,
    'bytes',
    [nicMsix.pendingOffset, nicMsix.pendingOffset],
    OWN,
    'Place of the pending bits in BAR0.',
  ),
} as const;
