/**
 * Congestion control of RoCE v2 and of InfiniBand: which algorithm the card has, and its numbers. DCQCN's have the names of mlx5's cc_params in
 * their descriptions. Each has its source or the word "estimate".
 */
import { type ConfigOf, ConfigurationError, choice, defaultsOf, number } from '../../../../base/index.ts';

const DCQCN = 'DCQCN';
const MLX5 = 'Linux 6.1 drivers/infiniband/hw/mlx5/cong.c';
const TIMELY = 'TIMELY';
const HFI1 = 'Linux 6.1 drivers/infiniband/hw/hfi1/init.c';

const notificationParameters = {
  algorithm: choice(
    'none',
    ['none', 'dcqcn', 'timely', 'cct'],
    'choice: a ConnectX-3 has none for RoCE (it has QCN, IEEE 802.1Qau); cards of mlx5 have DCQCN; InfiniBand has cct unless a subnet manager sets it',
    'Congestion control of QPs, which then have rates. On RoCE v2, with dcqcn, packets with payload are sent ECT, and marked ones are answered by CNPs. On InfiniBand, cct is annex A10: FECN is answered by BECN.',
  ),
  minTimeBetweenCnpsUs: number(
    50,
    'us',
    [0, 1_000_000],
    `${DCQCN}: N = 50 us; firmware of a ConnectX-4 has 4`,
    'Least time between two CNPs to one QP (np_min_time_between_cnps). Of no effect with cct.',
  ),
  cnpDscp: number(
    48,
    'DSCP',
    [0, 63],
    'scapy test/contrib/roce.uts: a CNP of a ConnectX-4 Lx; np_cnp_dscp',
    'DSCP of CNPs.',
  ),
  cnpPriority: number(
    6,
    'priority',
    [0, 7],
    'estimate: as its DSCP; np_cnp_prio',
    'Priority of CNPs in VLANs.',
  ),
} as const;

export const dcqcnParameters = {
  gainPer1024: number(
    4,
    '1/1024',
    [1, 1024],
    `${DCQCN}: g = 1/256`,
    'Weight of the last period in alpha (rp_dce_tcp_g, which has 1024 less it).',
  ),
  alphaPeriodUs: number(
    55,
    'us',
    [1, 1_000_000],
    `${DCQCN}: 55 us`,
    'Alpha decreases after each such time without a CNP (rp_dce_tcp_rtt).',
  ),
  initialAlphaPer1024: number(
    1024,
    '1/1024',
    [0, 1024],
    `${DCQCN}: 1`,
    'Alpha before the first CNP, which reduces the rate by half of it (rp_initial_alpha_value).',
  ),
  timerUs: number(
    55,
    'us',
    [1, 1_000_000],
    `${DCQCN}: 55 us; firmware of a ConnectX-4 has 300`,
    'The rate increases after each such time (rp_time_reset).',
  ),
  byteCounter: number(
    10_000_000,
    'bytes',
    [1, 1_073_741_824],
    `${DCQCN}: 10 MB`,
    'The rate increases after each that many bytes, too (rp_byte_reset).',
  ),
  fastRecoverySteps: number(
    5,
    'steps',
    [0, 1000],
    `${DCQCN}: F = 5`,
    'Increases before this number of expiries of the timer or the byte counter only halve the distance to R_T (rp_threshold).',
  ),
  additiveIncreaseMbps: number(
    40,
    'Mb/s',
    [1, 100_000],
    `${DCQCN}: 40 Mb/s`,
    'Added to that rate by each step after these (rp_ai_rate).',
  ),
  hyperIncreaseMbps: number(
    400,
    'Mb/s',
    [1, 100_000],
    'estimate: ten times as much; firmware of a ConnectX-4 has 5 and 50 Mb/s',
    'Added for each step by which timer and byte counter are both beyond them (rp_hai_rate).',
  ),
  minRateMbps: number(1, 'Mb/s', [1, 100_000], `${MLX5}: rp_min_rate; 1 Mb/s`, 'Least rate of a QP.'),
} as const;

export const timelyParameters = {
  lowUs: number(
    50,
    'us',
    [0, 1_000_000],
    `${TIMELY}: T_low = 50 us`,
    'Below this round trip the rate increases.',
  ),
  highUs: number(
    500,
    'us',
    [1, 1_000_000],
    `${TIMELY}: T_high = 500 us`,
    'Above this round trip the rate decreases, whatever its trend.',
  ),
  minRoundTripUs: number(
    20,
    'us',
    [1, 1_000_000],
    `${TIMELY}: 20 us`,
    'Unit of the trend: the least round trip.',
  ),
  weightPer1000: number(
    875,
    '1/1000',
    [1, 1000],
    `${TIMELY}: alpha = 0.875`,
    'Weight of the last difference of round trips in their trend.',
  ),
  decreasePer1000: number(800, '1/1000', [0, 1000], `${TIMELY}: beta = 0.8`, 'Strength of a decrease.'),
  additiveIncreaseMbps: number(
    10,
    'Mb/s',
    [1, 100_000],
    `${TIMELY}: delta = 10 Mb/s at 10 Gb/s`,
    'Added by an increase, and five times that after four in a row without an upward trend.',
  ),
  minRateMbps: number(100, 'Mb/s', [1, 100_000], 'estimate', 'Least rate of a QP.'),
} as const;

const cctParameters = {
  increase: number(
    1,
    'entries',
    [0, 255],
    'estimate: annex A10 leaves it to the subnet manager',
    'Added to the index of a QP by each BECN (CCTI_Increase).',
  ),
  limit: number(
    127,
    'entry',
    [0, 16_383],
    'estimate: the last of two blocks of 64 entries',
    'Greatest index (CCTI_Limit).',
  ),
  min: number(0, 'entry', [0, 16_383], 'estimate: no pause without congestion', 'Least index (CCTI_Min).'),
  timer: number(
    20,
    '1.024 us',
    [1, 65_535],
    `estimate: a few round trips through a full switch; unit: ${HFI1}, cca_timer_fn`,
    'The index decreases by one after each such time (CCTI_Timer).',
  ),
  multiplierStep: number(
    1,
    'per entry',
    [0, 16_383],
    'estimate: a table that rises linearly',
    'Multiplier of an entry of the congestion control table for each entry before it (CCT_Multiplier).',
  ),
  shift: number(
    1,
    'bits',
    [0, 3],
    `estimate: steps of half a packet; ${HFI1}, set_link_ipg: a packet's time x multiplier / 2^shift`,
    'Right shift of all multipliers (CCT_Shift): the pause after a packet is that many halvings shorter.',
  ),
} as const;

export const congestionParameters = {
  ...notificationParameters,
  dcqcn: dcqcnParameters,
  timely: timelyParameters,
  cct: cctParameters,
} as const;

export type DcqcnConfig = ConfigOf<typeof dcqcnParameters>;
export type TimelyConfig = ConfigOf<typeof timelyParameters>;
export type CctConfig = ConfigOf<typeof cctParameters>;
export type NotificationConfig = ConfigOf<typeof notificationParameters>;

export interface CongestionConfig extends NotificationConfig {
  readonly dcqcn: DcqcnConfig;
  readonly timely: TimelyConfig;
  readonly cct: CctConfig;
}

export const congestionDefaults = (): CongestionConfig => ({
  ...defaultsOf(notificationParameters),
  dcqcn: defaultsOf(dcqcnParameters),
  timely: defaultsOf(timelyParameters),
  cct: defaultsOf(cctParameters),
});

/** Whether the card answers marks of switches. On RoCE v2, packets with payload are then ECT. */
export const usesMarks = ({ algorithm }: NotificationConfig): boolean =>
  algorithm === 'dcqcn' || algorithm === 'cct';

/** Annex A10 has no least time between two notifications. */
export const leastCnpDistanceUs = ({ algorithm, minTimeBetweenCnpsUs }: NotificationConfig): number =>
  algorithm === 'cct' ? 0 : minTimeBetweenCnpsUs;

/** The port's link and the version of RoCE that it speaks. */
export interface CongestionLink {
  readonly linkLayer: string;
  readonly roce: string;
}

/**
 * @throws ConfigurationError for an algorithm on a port without its marks, and for limits of TIMELY or of the annex in the wrong order
 */
export function checkCongestion(
  { algorithm, timely, cct }: CongestionConfig,
  { linkLayer, roce }: CongestionLink,
): void {
  if (algorithm === 'cct' && linkLayer !== 'infiniband')
    throw new ConfigurationError(
      'hca.congestion.algorithm',
      algorithm,
      'dcqcn, timely or none with hca.capability.linkLayer=ethernet: FECN and BECN are of InfiniBand',
    );
  if (algorithm !== 'none' && algorithm !== 'cct' && roce !== 'v2')
    throw new ConfigurationError(
      'hca.congestion.algorithm',
      algorithm,
      'none without hca.capability.roce=v2: CNPs and ECN are of RoCE v2',
    );
  if (timely.highUs < timely.lowUs)
    throw new ConfigurationError(
      'hca.congestion.timely.highUs',
      timely.highUs,
      `at least hca.congestion.timely.lowUs (${timely.lowUs})`,
    );
  if (cct.limit < cct.min)
    throw new ConfigurationError(
      'hca.congestion.cct.limit',
      cct.limit,
      `at least hca.congestion.cct.min (${cct.min})`,
    );
}
