export { canonicalJson } from './canonical-json.ts';
export {
  type ConfigurationChoice,
  configHashOf,
  configurationOf,
  type ParameterValues,
} from './configuration.ts';
export { type ParameterRow, type ProfileListing, profileListing } from './listing.ts';
export type { MachineConfig, ParameterValue } from './parameter-tree.ts';
export { defaultProfileName, type Profile, profiles } from './profiles.ts';
export { parsedAssignment } from './values.ts';
