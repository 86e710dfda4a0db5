/**
 * The two BARs: the configuration registers of BAR0, and the geometry of UAR and BlueFlame pages in BAR2.
 *
 *   BAR2   0                       uarAreaBytes                    end
 *          | UAR 0 | UAR 1 | ...   | BF page 0 | BF page 1 | ...   |
 *            page n of the second area pairs with UAR n
 *
 * Byte order: HCR and doorbells are big-endian in memory, so a receiver on a little-endian bus must swap a 32-bit write
 * (base/bytes.ts `swap32`) to obtain the field value. Source: interface sheet 2.1–2.7, 6.9.
 */

import { foreignRegister, register, registerBank, registerBits, wholeRegister } from '../base/index.ts';
import { hcr } from './hcr.ts';
import { barSizeBytes, msix } from './pci-identity.ts';

/** BAR0. Registers without a fixed address in the interface (published by QUERY_FW) have this device's offsets. */
export const bar0 = registerBank(
  'BAR0',
  { sizeBytes: barSizeBytes.configuration, source: 'sheet 2.1' },
  {
    catastrophicBuffer: wholeRegister(
      0x1f800,
      0x40,
      'ro',
      '16 dwords; the first non-zero means a fatal firmware error',
    ),
    msixTable: foreignRegister(msix.tableOffset, msix.vectorCount * 16, 'little-endian, see hw/pcie'),
    msixPending: foreignRegister(msix.pendingOffset, msix.vectorCount / 8, 'little-endian pending bits'),
    hcr: wholeRegister(0x80680, hcr.sizeBytes, 'rw', 'command register, see hcr.ts; 32-bit accesses only'),
    owner: register(0x8069c, 4, 'owner', {
      isOwned: registerBits(0, 0, 'raZero', 'a read of 0 acquires the device, writing 0 releases it'),
    }),
    clock: wholeRegister(0x8a000, 8, 'ro', 'free-running counter, high dword first'),
    reset: register(0xf0010, 4, 'reset', {
      trigger: registerBits(
        0,
        0,
        'wo',
        'a value with it set resets the device: Linux writes 1, iPXE 0x01000001',
      ),
    }),
    hardwareId: register(0xf0014, 4, 'identity of the chip, as tools of the firmware read it', {
      id: registerBits(15, 0, 'ro', '0x1f5 of a ConnectX-3, 0x1f7 of a ConnectX-3 Pro'),
      revision: registerBits(23, 16, 'ro', 'revision'),
    }),
    clearInterrupt: wholeRegister(0xf00d8, 8, 'wo', 'INTx: bit p of the 64-bit mask clears pin p'),
    semaphore: register(0xf03fc, 4, 'hardware semaphore', {
      isHeld: registerBits(0, 0, 'ra', 'a read of 0 acquires, a write or a reset releases'),
    }),
    crSpaceAccess: register(0xf3f04, 4, 'CR-space access control', {
      enable: registerBits(6, 6, 'rw', 'used only for a dump after a health failure'),
    }),
  },
);

/** Bytes of one UAR page. */
export const uarPageBytes = 4096;

/** Offsets inside a UAR page. */
export const uarOffset = {
  sendDoorbell: 0x14,
  cqArm: 0x20,
  eqDoorbell: 0x800,
  /** Emulator-specific, only in UAR 0: drops cached translations, in order with the doorbells of the same core. */
  invalidate: 0x840,
} as const;

/** BAR2 offset of the send doorbell of a UAR. */
export const sendDoorbellOffset = (uarPage: number): number =>
  uarPage * uarPageBytes + uarOffset.sendDoorbell;

/** BAR2 offset of the 8-byte CQ arm register of a UAR. */
export const cqArmOffset = (uarPage: number): number => uarPage * uarPageBytes + uarOffset.cqArm;

/** BAR2 offset of an EQ's doorbell: four EQs share a page, so UAR pages below reserved count × 4 carry them. */
export const eqDoorbellOffset = (eqNumber: number): number =>
  (eqNumber >>> 2) * uarPageBytes + uarOffset.eqDoorbell + (eqNumber & 3) * 8;

/** The EQ whose doorbell is at this offset in this page; the caller has checked that it is one of the four. */
export const eqNumberOfDoorbell = (uarPage: number, offsetInPage: number): number =>
  uarPage * 4 + ((offsetInPage - uarOffset.eqDoorbell) >>> 3);

/** Whether an offset in a UAR page is the doorbell of one of the page's four EQs. */
export const isEqDoorbell = (offsetInPage: number): boolean =>
  offsetInPage >= uarOffset.eqDoorbell &&
  offsetInPage < uarOffset.eqDoorbell + 32 &&
  (offsetInPage & 7) === 0;

/** Layout of BlueFlame; QUERY_DEV_CAP publishes all of it (bytes 49, 4d, 4e). */
export interface BlueFlameGeometry {
  /** Offset of the first BlueFlame page in BAR2. */
  readonly uarAreaBytes: number;
  /** One register; its two halves are used in turn. */
  readonly registerBytes: number;
  readonly registersPerPage: number;
}

/** BAR2 offset of one half (0 or 1) of a BlueFlame register. */
export const blueFlameOffset = (
  geometry: BlueFlameGeometry,
  uarPage: number,
  registerIndex: number,
  half: number,
): number =>
  geometry.uarAreaBytes +
  uarPage * uarPageBytes +
  registerIndex * geometry.registerBytes +
  half * (geometry.registerBytes >>> 1);

export const isBlueFlame = (geometry: BlueFlameGeometry, bar2Offset: number): boolean =>
  bar2Offset >= geometry.uarAreaBytes;

/** The UAR that a BAR2 offset belongs to, in either area. */
export const uarPageOf = (geometry: BlueFlameGeometry, bar2Offset: number): number =>
  Math.floor((bar2Offset % geometry.uarAreaBytes) / uarPageBytes);

/** Offset inside the half of a BlueFlame register: 0 where a post begins. */
export const offsetInBlueFlameHalf = (geometry: BlueFlameGeometry, bar2Offset: number): number =>
  (bar2Offset - geometry.uarAreaBytes) & ((geometry.registerBytes >>> 1) - 1);

/** A post is copied in multiples of this many bytes. */
export const blueFlameCopyBytes = 64;
