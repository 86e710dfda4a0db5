export {
  changesOf,
  configHashOf,
  configurationOf,
  type ParameterValues,
} from './configuration.ts';
export { type ProfileListing, profileListing } from './listing.ts';
export type { MachineConfig, ParameterValue } from './parameter-tree.ts';
export { defaultProfileName } from './profiles.ts';
export { parsedAssignment } from './values.ts';
