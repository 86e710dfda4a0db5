/**
 * The type 0 configuration header, as a table. Fields that an endpoint of PCI Express hardwires to zero are left out:
 * unclaimed bits read zero and ignore writes.
 *
 *     00 vendor id, device id          10..24 six base address registers
 *     04 command, status               2c subsystem vendor id, subsystem id
 *     08 revision, class code          34 capabilities pointer
 *     0c cache line size, header type  3c interrupt line, interrupt pin
 */
import { configBits as bits, configRegister, configStructure } from './config-register.ts';

const barRegister = (offset: number) =>
  configRegister(offset, 4, {
    isIoSpace: bits(0, 0, 'HwInit', 'zero: memory space'),
    type: bits(2, 1, 'HwInit', '0: 32-bit, 2: 64-bit with the next register'),
    isPrefetchable: bits(3, 3, 'HwInit', 'reads have no side effects'),
    address: bits(31, 4, 'RW', 'address; the bits below the size are hardwired to zero'),
  });

export const type0Header = configStructure(
  'type0Header',
  { sizeBytes: 0x40, source: 'PCI Express Base Specification 3.1, 7.5.1 and 7.5.2' },
  {
    vendorId: configRegister(0x00, 2, { value: bits(15, 0, 'HwInit', 'vendor') }),
    deviceId: configRegister(0x02, 2, { value: bits(15, 0, 'HwInit', 'device') }),
    command: configRegister(0x04, 2, {
      memorySpaceEnable: bits(1, 1, 'RW', 'the BARs are decoded'),
      busMasterEnable: bits(2, 2, 'RW', 'the function may issue memory requests'),
      parityErrorResponse: bits(6, 6, 'RW', 'poisoned TLPs set master data parity error'),
      serrEnable: bits(8, 8, 'RW', 'uncorrectable errors are reported to the root complex'),
      interruptDisable: bits(10, 10, 'RW', 'INTx messages are not sent'),
    }),
    status: configRegister(0x06, 2, {
      interruptStatus: bits(3, 3, 'RO', 'an INTx interrupt is pending inside the function'),
      capabilitiesList: bits(4, 4, 'RO', 'always one', 1),
      masterDataParityError: bits(
        8,
        8,
        'RW1C',
        'a poisoned completion was received, or a poisoned write sent',
      ),
      signaledTargetAbort: bits(11, 11, 'RW1C', 'a request was completed with Completer Abort'),
      receivedTargetAbort: bits(12, 12, 'RW1C', 'a completion with Completer Abort was received'),
      receivedMasterAbort: bits(13, 13, 'RW1C', 'a completion with Unsupported Request was received'),
      signaledSystemError: bits(14, 14, 'RW1C', 'ERR_FATAL or ERR_NONFATAL was sent with SERR enabled'),
      detectedParityError: bits(15, 15, 'RW1C', 'a poisoned TLP was received'),
    }),
    revisionId: configRegister(0x08, 1, { value: bits(7, 0, 'HwInit', 'revision') }),
    programmingInterface: configRegister(0x09, 1, { value: bits(7, 0, 'HwInit', 'class code [7:0]') }),
    classCode: configRegister(0x0a, 2, { value: bits(15, 0, 'HwInit', 'class code [23:8]') }),
    cacheLineSize: configRegister(0x0c, 1, { value: bits(7, 0, 'RW', 'without effect in PCI Express') }),
    headerType: configRegister(0x0e, 1, {
      layout: bits(6, 0, 'HwInit', 'type 0'),
      isMultiFunction: bits(7, 7, 'HwInit', 'one function only'),
    }),
    bar0: barRegister(0x10),
    bar1: barRegister(0x14),
    bar2: barRegister(0x18),
    bar3: barRegister(0x1c),
    bar4: barRegister(0x20),
    bar5: barRegister(0x24),
    subsystemVendorId: configRegister(0x2c, 2, { value: bits(15, 0, 'HwInit', 'subsystem vendor') }),
    subsystemId: configRegister(0x2e, 2, { value: bits(15, 0, 'HwInit', 'subsystem') }),
    capabilitiesPointer: configRegister(0x34, 1, {
      value: bits(7, 0, 'HwInit', 'offset of the first capability'),
    }),
    interruptLine: configRegister(0x3c, 1, { value: bits(7, 0, 'RW', 'scratch byte of system software') }),
    interruptPin: configRegister(0x3d, 1, { value: bits(7, 0, 'HwInit', '1: INTA') }),
  },
);

/** Offset of the first base address register; the others follow 4 bytes apart. */
export const BAR_REGISTER_OFFSET = 0x10;
export const BAR_REGISTER_COUNT = 6;
