/**
 * Encodes the speed and width of a port's link for PortInfo, QUERY_PORT and path records. The port supports the speed
 * and width of its cable, and each slower speed and narrower width.
 *
 * Up to QDR a speed has a bit in the LinkSpeed fields; FDR and faster have one in the LinkSpeedExt fields, next to QDR
 * in the former. FDR10 is QDR in both, and told apart by the vendor's attribute. Sources: InfiniBand Architecture
 * volume 1, 14.2.5.6 (PortInfo) and 15.2.5.16 (rates of paths); interface sheet 3.13, 7.6.
 */
import { LinkSpeed, LinkSpeedExtended, LinkWidth, PortCapability, PortCapability2 } from '../../abi/index.ts';
import type { WireConfig } from '../../wire/index.ts';

type Speed = WireConfig['speed'];
type Lanes = WireConfig['lanes'];

/** All speeds up to one, as a mask. */
const upTo = (bit: number): number => 2 * bit - 1;

const speeds: Readonly<Record<Speed, { readonly base: LinkSpeed; readonly extended: LinkSpeedExtended }>> = {
  SDR: { base: LinkSpeed.SDR, extended: LinkSpeedExtended.NONE },
  DDR: { base: LinkSpeed.DDR, extended: LinkSpeedExtended.NONE },
  QDR: { base: LinkSpeed.QDR, extended: LinkSpeedExtended.NONE },
  FDR10: { base: LinkSpeed.QDR, extended: LinkSpeedExtended.NONE },
  FDR: { base: LinkSpeed.QDR, extended: LinkSpeedExtended.FDR },
  EDR: { base: LinkSpeed.QDR, extended: LinkSpeedExtended.EDR },
  HDR: { base: LinkSpeed.QDR, extended: LinkSpeedExtended.HDR },
  NDR: { base: LinkSpeed.QDR, extended: LinkSpeedExtended.NDR },
};

/** A port of 12X supports 1X and 4X, but not 8X. Ports of 4X and wider do not support 2X, which HDR introduced. */
const widths: Readonly<Record<Lanes, { readonly active: LinkWidth; readonly supported: number }>> = {
  1: { active: LinkWidth.WIDTH_1X, supported: LinkWidth.WIDTH_1X },
  2: { active: LinkWidth.WIDTH_2X, supported: LinkWidth.WIDTH_1X | LinkWidth.WIDTH_2X },
  4: { active: LinkWidth.WIDTH_4X, supported: LinkWidth.WIDTH_1X | LinkWidth.WIDTH_4X },
  8: {
    active: LinkWidth.WIDTH_8X,
    supported: LinkWidth.WIDTH_1X | LinkWidth.WIDTH_4X | LinkWidth.WIDTH_8X,
  },
  12: {
    active: LinkWidth.WIDTH_12X,
    supported: LinkWidth.WIDTH_1X | LinkWidth.WIDTH_4X | LinkWidth.WIDTH_12X,
  },
};

/** Codes of rates by lanes: 2.5 Gb/s is 2, 10 is 3, 40 is 7. Those beyond 300 Gb/s are of later releases. */
const rates: Readonly<Record<Speed, Readonly<Record<Lanes, number>>>> = {
  SDR: { 1: 2, 2: 5, 4: 3, 8: 6, 12: 4 },
  DDR: { 1: 5, 2: 3, 4: 6, 8: 7, 12: 8 },
  QDR: { 1: 3, 2: 6, 4: 7, 8: 9, 12: 10 },
  FDR10: { 1: 3, 2: 6, 4: 7, 8: 9, 12: 10 },
  FDR: { 1: 11, 2: 19, 4: 12, 8: 13, 12: 14 },
  EDR: { 1: 15, 2: 20, 4: 16, 8: 17, 12: 18 },
  HDR: { 1: 20, 2: 16, 4: 17, 8: 21, 12: 22 },
  NDR: { 1: 16, 2: 17, 4: 21, 8: 23, 12: 24 },
};

export type LinkSetting = Pick<WireConfig, 'speed' | 'lanes'>;

/** The fields of PortInfo that a link decides; the speeds and widths that are supported are also enabled. */
export function portInfoOfLink({ speed, lanes }: LinkSetting) {
  const { base, extended } = speeds[speed];
  const width = widths[lanes];
  const supported = upTo(base);
  const extendedSupported = extended === LinkSpeedExtended.NONE ? 0 : upTo(extended);
  return {
    linkWidthEnabled: width.supported,
    linkWidthSupported: width.supported,
    linkWidthActive: width.active,
    linkSpeedSupported: supported,
    linkSpeedEnabled: supported,
    linkSpeedActive: base,
    linkSpeedExtendedSupported: extendedSupported,
    linkSpeedExtendedEnabled: extendedSupported,
    linkSpeedExtendedActive: extended,
    capabilityMask2:
      (extended >= LinkSpeedExtended.HDR ? PortCapability2.HAS_HDR : 0) |
      (extended >= LinkSpeedExtended.NDR ? PortCapability2.HAS_NDR : 0),
  };
}

/** Bits of PortInfo.CapabilityMask for the speeds of a link. */
export const capabilitiesOfLink = ({ speed }: LinkSetting): number => {
  const { extended } = speeds[speed];
  return (
    (extended === LinkSpeedExtended.NONE ? 0 : PortCapability.HAS_EXTENDED_SPEEDS) |
    (extended >= LinkSpeedExtended.HDR ? PortCapability.HAS_CAPABILITY_MASK_2 : 0)
  );
};

/** Speed in the vendor's attribute: 1 for FDR10, 0 for the speeds that PortInfo names. */
export const vendorSpeedOf = ({ speed }: LinkSetting): number => Number(speed === 'FDR10');

/** Speed and widths in QUERY_PORT. */
export const queryPortOfLink = ({ speed, lanes }: LinkSetting) => ({
  ibLinkSpeed: speeds[speed].base,
  // The command is older than 2X, and has four bits for widths.
  maxIbWidth: widths[lanes].supported & 0xf,
});

/** Rate of paths over the link. */
export const pathRateOf = ({ speed, lanes }: LinkSetting): number => rates[speed][lanes];
