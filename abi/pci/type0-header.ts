/**
 * The type 0 configuration header of an endpoint with two 64-bit BARs, as a table. Fields that an endpoint of PCI Express hardwires to zero are left out:
 * unclaimed bits read zero and ignore writes.
 *
 *     00 vendor id, device id          10..24 six base address registers
 *     04 command, status               2c subsystem vendor id, subsystem id
 *     08 revision, class code          34 capabilities pointer
 *     0c cache line size, header type  3c interrupt line, interrupt pin
 */
import { registerBits as bits, register, registerBank, wholeRegister } from '../../base/index.ts';

const barRegister = (offset: number) =>
  register(offset, 4, 'Base Address Register', {
    isIoSpace: bits(0, 0, 'hwInit', 'zero: memory space'),
    type: bits(2, 1, 'hwInit', '0: 32-bit, 2: 64-bit with the next register'),
    isPrefetchable: bits(3, 3, 'hwInit', 'reads have no side effects'),
    address: bits(31, 4, 'rw', 'address; the bits below the size are hardwired to zero'),
  });

const upperBarRegister = (offset: number) =>
  wholeRegister(offset, 4, 'rw', 'upper half of the address of the register before');

export const type0Header = registerBank(
  'type0Header',
  { sizeBytes: 0x40, source: 'PCI Express Base Specification 3.1, 7.5.1 and 7.5.2' },
  {
    vendorId: wholeRegister(0x00, 2, 'hwInit', 'vendor'),
    deviceId: wholeRegister(0x02, 2, 'hwInit', 'device'),
    command: register(0x04, 2, 'Command', {
      memorySpaceEnable: bits(1, 1, 'rw', 'the BARs are decoded'),
      busMasterEnable: bits(2, 2, 'rw', 'the function may issue memory requests'),
      parityErrorResponse: bits(6, 6, 'rw', 'poisoned TLPs set master data parity error'),
      serrEnable: bits(8, 8, 'rw', 'uncorrectable errors are reported to the root complex'),
      interruptDisable: bits(10, 10, 'rw', 'INTx messages are not sent'),
    }),
    status: register(0x06, 2, 'Status', {
      interruptStatus: bits(3, 3, 'ro', 'an INTx interrupt is pending inside the function'),
      capabilitiesList: bits(4, 4, 'ro', 'always one', 1),
      masterDataParityError: bits(
        8,
        8,
        'w1c',
        'a poisoned completion was received, or a poisoned write sent',
      ),
      signaledTargetAbort: bits(11, 11, 'w1c', 'a request was completed with Completer Abort'),
      receivedTargetAbort: bits(12, 12, 'w1c', 'a completion with Completer Abort was received'),
      receivedMasterAbort: bits(13, 13, 'w1c', 'a completion with Unsupported Request was received'),
      signaledSystemError: bits(14, 14, 'w1c', 'ERR_FATAL or ERR_NONFATAL was sent with SERR enabled'),
      detectedParityError: bits(15, 15, 'w1c', 'a poisoned TLP was received'),
    }),
    revisionId: wholeRegister(0x08, 1, 'hwInit', 'revision'),
    programmingInterface: wholeRegister(0x09, 1, 'hwInit', 'class code [7:0]'),
    classCode: wholeRegister(0x0a, 2, 'hwInit', 'class code [23:8]'),
    cacheLineSize: wholeRegister(0x0c, 1, 'rw', 'without effect in PCI Express'),
    headerType: register(0x0e, 1, 'Header Type', {
      layout: bits(6, 0, 'hwInit', 'type 0'),
      isMultiFunction: bits(7, 7, 'hwInit', 'one function only'),
    }),
    bar0: barRegister(0x10),
    bar1: upperBarRegister(0x14),
    bar2: barRegister(0x18),
    bar3: upperBarRegister(0x1c),
    subsystemVendorId: wholeRegister(0x2c, 2, 'hwInit', 'subsystem vendor'),
    subsystemId: wholeRegister(0x2e, 2, 'hwInit', 'subsystem'),
    capabilitiesPointer: wholeRegister(0x34, 1, 'hwInit', 'offset of the first capability'),
    interruptLine: wholeRegister(0x3c, 1, 'rw', 'scratch byte of system software'),
    interruptPin: wholeRegister(0x3d, 1, 'hwInit', '1: INTA'),
  },
);

/** Offset of the first base address register; the others follow 4 bytes apart. */
export const BAR_REGISTER_OFFSET = 0x10;
export const BAR_REGISTER_COUNT = 6;
