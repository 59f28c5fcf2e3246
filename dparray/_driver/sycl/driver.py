"""The functions of the SYCL driver: :class:`dparray._driver.interface.Driver`."""

from dparray._driver.sycl.devices import NEEDS_OF_GPUS as NEEDS_OF_GPUS
from dparray._driver.sycl.devices import copies_by_host as copies_by_host
from dparray._driver.sycl.devices import default_queue as default_queue
from dparray._driver.sycl.devices import describe as describe
from dparray._driver.sycl.devices import device_of as device_of
from dparray._driver.sycl.devices import devices as devices
from dparray._driver.sycl.devices import domain as domain
from dparray._driver.sycl.devices import has_profiling as has_profiling
from dparray._driver.sycl.devices import is_in_order as is_in_order
from dparray._driver.sycl.devices import is_queue as is_queue
from dparray._driver.sycl.devices import names_device_only as names_device_only
from dparray._driver.sycl.devices import new_queue as new_queue
from dparray._driver.sycl.devices import path_of as path_of
from dparray._driver.sycl.devices import root_of as root_of
from dparray._driver.sycl.devices import select as select
from dparray._driver.sycl.devices import split as split
from dparray._driver.sycl.devices import taken as taken
from dparray._driver.sycl.devices import traits as traits
from dparray._driver.sycl.devices import unusable as unusable
from dparray._driver.sycl.devices import why_none as why_none

name = "sycl"
