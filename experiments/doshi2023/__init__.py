"""Doshi, Das, He and Gromov (2023): to grok or not to grok."""
