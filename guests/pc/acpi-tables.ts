/**
 * The ACPI tables of the PC, by which a kernel finds its interrupt controllers and its PCI bus.
 *
 *     RSDP ─► RSDT ─┬─► FADT ─► DSDT: the host bridge, its windows, its interrupt lines
 *                   ├─► MADT: local APIC, I/O APIC
 *                   └─► MCFG: configuration space by memory accesses
 *
 * Source: ACPI specification 6.5, section 5.2; PCI Firmware specification 3.3, table 4-2 (MCFG).
 */
import {
  busNumbers,
  device,
  eisaId,
  integer,
  ioPorts,
  little,
  memoryWindow,
  named,
  ownMemory,
  ownPorts,
  packageOf,
  resources,
  scope,
} from './aml.ts';
import {
  controlLine,
  ecamAddress,
  ecamBytes,
  generalEventPort,
  ioApicAddress,
  localApicAddress,
  offSleepType,
  powerControlPort,
  powerEventPort,
  powerTimerPort,
  tablesAddress,
  windowAddress,
  windowBytes,
} from './memory-map.ts';

/** A device whose pin INTA is wired to a line of the I/O APIC. */
export interface WiredDevice {
  readonly device: number;
  readonly line: number;
}

const headerBytes = 36;
const rsdpBytes = 20;
const alignmentBytes = 16;
const fadtBytes = 116;

const text = (value: string, byteCount: number): number[] =>
  [...value.padEnd(byteCount)].map((character) => character.charCodeAt(0));

/** A table with its header (5.2.6); all of its bytes add up to 0. */
function table(signature: string, revision: number, body: readonly number[]): number[] {
  const bytes = [
    ...text(signature, 4),
    ...little(headerBytes + body.length, 4),
    ...[revision, 0],
    ...text('HCAEMU', 6),
    ...text('HCA PC', 8),
    ...little(1, 4),
    ...text('HCAE', 4),
    ...little(1, 4),
    ...body,
  ];
  bytes[9] = complementOf(bytes);
  return bytes;
}

const complementOf = (bytes: readonly number[]): number => -bytes.reduce((sum, byte) => sum + byte, 0) & 0xff;

/** The tables, for {@link tablesAddress}; the RSDP is their beginning. */
export function acpiTables(wired: readonly WiredDevice[]): Uint8Array<ArrayBuffer> {
  const bytes: number[] = new Array(rsdpBytes).fill(0);
  const place = (content: readonly number[]): number => {
    while (bytes.length % alignmentBytes !== 0) bytes.push(0);
    const address = tablesAddress + bytes.length;
    bytes.push(...content);
    return address;
  };
  const facs = place([...text('FACS', 4), ...little(64, 4), ...new Array(56).fill(0)]);
  const dsdt = place(table('DSDT', 2, devices(wired)));
  const fadt = place(table('FACP', 1, fixedHardware(facs, dsdt)));
  const madt = place(table('APIC', 1, interruptControllers()));
  const mcfg = place(table('MCFG', 1, configurationSpace()));
  const rsdt = place(
    table(
      'RSDT',
      1,
      [fadt, madt, mcfg].flatMap((address) => little(address, 4)),
    ),
  );
  const rsdp = [...text('RSD PTR ', 8), 0, ...text('HCAEMU', 6), 0, ...little(rsdt, 4)];
  rsdp[8] = complementOf(rsdp);
  bytes.splice(0, rsdpBytes, ...rsdp);
  return Uint8Array.from(bytes);
}

/** Fixed hardware (5.2.9) of ACPI 1.0: the registers are there, and the controller is always in ACPI mode. */
function fixedHardware(facs: number, dsdt: number): number[] {
  const view = new DataView(new ArrayBuffer(fadtBytes - headerBytes));
  const put32 = (offset: number, value: number): void => view.setUint32(offset - headerBytes, value, true);
  const put16 = (offset: number, value: number): void => view.setUint16(offset - headerBytes, value, true);
  const put8 = (offset: number, value: number): void => view.setUint8(offset - headerBytes, value);
  put32(36, facs);
  put32(40, dsdt);
  put16(46, controlLine);
  put32(56, powerEventPort);
  put32(64, powerControlPort);
  put32(76, powerTimerPort);
  put32(80, generalEventPort);
  put8(88, 4);
  put8(89, 2);
  put8(91, 4);
  put8(92, 4);
  // No C2, C3 states; legacy devices, an 8042.
  put16(96, 0xffff);
  put16(98, 0xffff);
  put16(109, 0b11);
  // WBINVD works; C1 on all processors; no power or sleep button.
  put32(112, 0b11_0101);
  return [...new Uint8Array(view.buffer)];
}

/** One processor, one I/O APIC for lines 0 to 23 (5.2.12); the control interrupt is level-triggered, active high. */
const interruptControllers = (): number[] => [
  ...little(localApicAddress, 4),
  ...little(1, 4),
  ...[0, 8, 0, 0, ...little(1, 4)],
  ...[1, 12, 0, 0, ...little(ioApicAddress, 4), ...little(0, 4)],
  ...[2, 10, 0, controlLine, ...little(controlLine, 4), ...little(0b1101, 2)],
];

const configurationSpace = (): number[] => [
  ...new Array(8).fill(0),
  ...little(ecamAddress, 8),
  ...little(0, 2),
  ...[0, 0],
  ...little(0, 4),
];

function devices(wired: readonly WiredDevice[]): number[] {
  const bridge = device(
    'PCI0',
    named('_HID', eisaId('PNP0A08')),
    named('_CID', eisaId('PNP0A03')),
    named('_UID', integer(0)),
    named(
      '_CRS',
      resources(
        busNumbers(0, 0),
        ownPorts(0xcf8, 8),
        ioPorts(0, 0xcf7),
        ioPorts(0xd00, 0xffff),
        memoryWindow(windowAddress, windowAddress + windowBytes - 1),
      ),
    ),
    named('_PRT', packageOf(...wired.map(routeOf))),
  );
  const board = device(
    'MCFG',
    named('_HID', eisaId('PNP0C02')),
    named('_CRS', resources(ownMemory(ecamAddress, ecamBytes))),
  );
  const off = packageOf(integer(offSleepType), integer(offSleepType), integer(0), integer(0));
  return [...scope('\\_SB', bridge, board), ...named('\\_S5', off)];
}

/** A device's pin INTA at its line (6.2.13): the device's number, any function; pin; no link device; line. */
const routeOf = ({ device: number, line }: WiredDevice): number[] =>
  packageOf(integer(number * 2 ** 16 + 0xffff), integer(0), integer(0), integer(line));
