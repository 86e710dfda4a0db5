/**
 * Pages that a device reaches without a pin (on-demand paging): exclusive pages of the process, with one reference each, so
 * that a frame outlives its mapping until the device has released it. They do not count as locked; reclaim skips them and
 * notifies their holder (notifier-list.ts).
 */

import type { AccessMode } from './access-mode.ts';
import type { AddressSpace } from './address-space.ts';
import { pageBytes } from './page.ts';
import { pageDirty } from './pages.ts';
import { ownFrame, type PinAccess } from './pins.ts';

/** The kernel on behalf of a device: it yields its core while a page is read. */
const deviceAccess: AccessMode = { waitsInPlace: false, isUser: false };

/**
 * Makes the page of an address present for a device.
 * @param isAgain the answer was `later`
 * @returns its physical address, or as {@link ownFrame}
 */
export function holdForDevice(
  space: AddressSpace,
  address: number,
  access: PinAccess,
  isAgain = false,
): number | 'EFAULT' | 'ENOMEM' | 'later' {
  const frame = ownFrame(space, address - (address % pageBytes), access, deviceAccess, isAgain);
  if (typeof frame === 'string') return frame;
  space.mm.frames.reference(frame);
  space.mm.counts.devicePagesHeld++;
  return frame * pageBytes;
}

/** The device no longer reaches the page; a page that it may have written is dirty. */
export function releaseFromDevice({ mm }: AddressSpace, physical: number, access: PinAccess): void {
  const frame = physical / pageBytes;
  if (access === 'write') mm.pages.set(frame, pageDirty);
  mm.counts.devicePagesReleased++;
  mm.release(frame);
}
